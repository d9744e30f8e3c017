import { treaty } from "@elysiajs/eden/treaty2";
import type { App } from "../../src/app.ts";
import { csrfToken, endSession } from "./session.ts";
import { noteServerTime } from "./now.ts";

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

type Answer<T> = { data: T; error: null } | { data: null; error: { status: unknown; value: unknown } };

/**
 * The body of an answer.
 * @throws ApiError for everything that is not a 2xx; a 401 also ends the session, which leads to the login page
 */
export async function bodyOf<T>(call: Promise<Answer<T> & { response: Response }>): Promise<NonNullable<T>> {
  const answer = await call.catch(() => {
    throw new ApiError(0, "The server does not answer");
  });
  if (answer.error === null) return answer.data as NonNullable<T>;
  const status = Number(answer.error.status);
  if (status === 401) endSession();
  throw new ApiError(status, messageOf(answer.error.value, status), retryAfter(answer.response));
}

function messageOf(value: unknown, status: number): string {
  if (typeof value === "object" && value !== null && "error" in value && typeof value.error === "string")
    return value.error;
  return status === 0 || Number.isNaN(status) ? "The server does not answer" : `The server answered ${status}`;
}

function retryAfter(response: Response): number {
  const seconds = Number(response.headers.get("retry-after"));
  return Number.isFinite(seconds) ? seconds : 0;
}
