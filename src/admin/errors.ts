/** A refusal in the words that the client reads: `{"error": message}`. */
export class ApiError extends Error {
  override name = "ApiError";
  constructor(
    readonly status: 400 | 401 | 403 | 404 | 409 | 413 | 415 | 429 | 503,
    message: string,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
  }
}
