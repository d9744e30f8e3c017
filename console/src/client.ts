import { treaty } from "@elysiajs/eden/treaty2";
import type { App } from "../../src/server/app.ts";
import { updateServerClock } from "./lib/server-clock.ts";
import { csrfToken, endSession } from "./lib/session.ts";

/** A failed request, with the server's own message. Status 0: no response arrived. */
export class ApiError extends Error {
  override name = "ApiError";
  constructor(
    readonly status: number,
    message: string,
    /** From Retry-After; 0 without one. */
    readonly retryAfterSeconds = 0,
  ) {
    super(message);
  }
}

export const api = treaty<App>(location.origin, {
  // Timestamps stay strings, as the types say.
  parseDate: false,
  fetch: { credentials: "same-origin" },
  onRequest: async (_path, { method }) =>
    method === "GET" ? undefined : { headers: { "x-csrf-token": await csrfToken() } },
  onResponse: (response) => updateServerClock(response.headers.get("date")),
}).api;

/**
 * Eden (1.4.9) reports a request without a response as a 503 and leaves `response` undefined, although its types do not say
 * so. Remove when they do.
 */
type EdenResponse<T> = ({ data: T; error: null } | { data: null; error: { status: unknown; value: unknown } }) & {
  response: Response | undefined;
};

/**
 * The body of a successful response.
 * @throws ApiError if the status is not 2xx or no response arrives; a 401 also ends the session, which opens the login page
 */
export async function responseBody<T>(call: Promise<EdenResponse<T>>): Promise<NonNullable<T>> {
  const { data, error, response } = await call.catch(() => noResponse);
  if (response === undefined) throw new ApiError(0, "The server does not respond");
  // A proxy in front of Tollgate may respond with a page of its own.
  if (error === null && !isJson(response)) throw new ApiError(response.status, "The response is not from Tollgate");
  if (error === null) return data as NonNullable<T>;
  if (response.status === 401) endSession();
  throw new ApiError(response.status, messageOf(error.value, response.status), retryAfter(response));
}

/** Whether text can be an API key. `fetch` throws for a header with some others, such as the `…` of a masked key. */
export const canBeKey = (text: string): boolean => /^[\x21-\x7e]+$/.test(text);

export const refusedKeyProblem = "This key is unknown, inactive or expired";

/**
 * The JSON of a GET with an API key instead of the session.
 * @throws ApiError
 */
export async function requestWithKey<T>(path: string, key: string): Promise<T> {
  if (!canBeKey(key)) throw new ApiError(401, refusedKeyProblem);
  const headers = { authorization: `Bearer ${key}` };
  const response = await fetch(path, { headers, credentials: "omit" }).catch(() => undefined);
  if (response === undefined) throw new ApiError(0, "The server does not respond");
  if (response.status === 401) throw new ApiError(401, refusedKeyProblem);
  if (!isJson(response)) throw new ApiError(response.status, "The response is not from Tollgate");
  const body: unknown = await response.json();
  if (!response.ok) throw new ApiError(response.status, messageOf(body, response.status));
  return body as T;
}

/** Why a request failed, without a full stop. */
export const causeOf = (error: unknown): string =>
  error instanceof ApiError ? error.message.replace(/\.$/, "") : "the response could not be read";

/** Without a session or a server, the rest fails too. */
const isFinal = (error: unknown): boolean => error instanceof ApiError && (error.status === 401 || error.status === 0);

/**
 * Does something for each item, one after the other. An error does not end it, unless it concerns the rest too.
 * @param onDone called after each item
 */
export async function forEachInTurn<T>(
  items: readonly T[],
  act: (item: T) => Promise<unknown>,
  onDone: (item: T, error?: unknown) => void,
): Promise<void> {
  let final: unknown;
  for (const item of items) {
    try {
      if (final !== undefined) throw final;
      // oxlint-disable-next-line no-await-in-loop -- in turn, so that many changes do not delay the requests of clients
      await act(item);
      onDone(item);
    } catch (error) {
      if (isFinal(error)) final = error;
      onDone(item, error);
    }
  }
}

/** Also for a body that ends early. */
const noResponse = { data: null, error: { status: 0, value: undefined }, response: undefined };

function messageOf(value: unknown, status: number): string {
  const message = typeof value === "object" && value !== null && "error" in value ? value.error : undefined;
  return typeof message === "string" ? message : `The server responded with status ${status}`;
}

/** A response without content has no type. */
const isJson = ({ headers, status }: Response): boolean =>
  status === 204 || (headers.get("content-type") ?? "").startsWith("application/json");

function retryAfter(response: Response): number {
  const seconds = Number(response.headers.get("retry-after"));
  return Number.isFinite(seconds) ? seconds : 0;
}
