import { expect, test } from "bun:test";
import { errorBody } from "../../../src/proxy/errors.ts";
import { dialectOf } from "../../../src/proxy/response/dialect.ts";

const refusal = errorBody("invalid_json", { message: "Too long." }, { requestId: "r-1" });
const { error } = refusal;

test.each<[own: { code?: string | number; type?: string }, status: number, code: string]>([
  [{ code: "context_length_exceeded" }, 400, "context_length_exceeded"],
  [{ code: 500, type: "server_error" }, 400, "server_error"],
  [{ type: "rate_limit_exceeded" }, 503, "rate_limit_exceeded"],
  [{ type: "BadRequestError", code: 400 }, 400, "invalid_prompt"],
  [{}, 401, "invalid_prompt"],
  [{}, 408, "invalid_prompt"],
  [{ code: "tokens_per_day" }, 429, "rate_limit_exceeded"],
  [{}, 500, "server_error"],
  [{}, 504, "server_error"],
])("under /v1/responses an error of %j with status %d is %s", (own, status, code) => {
  const body = { ...refusal, error: { ...error, ...own } };
  const { before, after } = dialectOf("/v1/responses");
  const read = (text: string): unknown => JSON.parse(text.slice(text.indexOf("{")));
  expect(read(before.error(body, status))).toMatchObject({ code, error: body.error });
  expect(read(after.error(body, status))).toMatchObject({ response: { error: { code } }, error: body.error });
});
