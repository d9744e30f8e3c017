import { treaty } from "@elysiajs/eden/treaty2";
import type { App } from "../../src/app.ts";
import { csrfToken, endSession } from "./data/session.ts";
import { noteServerTime } from "./data/server-clock.ts";

/** A refusal in the server's words. Status 0: no answer came. */
export class ApiError extends Error {
  override name = "ApiError";
  constructor(
    readonly status: number,
    message: string,
    /** From Retry-After; 0 where there was none. */
    readonly retryAfterSeconds = 0,
  ) {
    super(message);
  }
}

export const api = treaty<App>(location.origin, {
  // Times stay the text that the server sent.
  parseDate: false,
  fetch: { credentials: "same-origin" },
  headers: () => ({ "x-csrf-token": csrfToken() }),
  onResponse: (response) => noteServerTime(response.headers.get("date")),
}).api;

/**
 * Eden (1.4.9) calls a request that got no answer a 503 without a response, whatever its types say.
 * Remove when its types include a missing response.
 */
type Answer<T> = ({ data: T; error: null } | { data: null; error: { status: unknown; value: unknown } }) & {
  response: Response | undefined;
};

/**
 * The body of an answer.
 * @throws ApiError for everything that is not a 2xx; a 401 also ends the session, which leads to the login page
 */
export async function bodyOf<T>(call: Promise<Answer<T>>): Promise<NonNullable<T>> {
  const { data, error, response } = await call.catch(() => noAnswer);
  if (response === undefined) throw new ApiError(0, "The server does not answer");
  if (error === null) return data as NonNullable<T>;
  if (response.status === 401) endSession();
  throw new ApiError(response.status, messageOf(error.value, response.status), retryAfter(response));
}

/** A body that breaks off is none. */
const noAnswer = { data: null, error: { status: 0, value: undefined }, response: undefined };

function messageOf(value: unknown, status: number): string {
  const told = typeof value === "object" && value !== null && "error" in value ? value.error : undefined;
  return typeof told === "string" ? told : `The server answered ${status}`;
}

function retryAfter(response: Response): number {
  const seconds = Number(response.headers.get("retry-after"));
  return Number.isFinite(seconds) ? seconds : 0;
}
