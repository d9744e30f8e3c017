import { type SimulatedResponse, jsonAnswer } from "../answer.ts";
import type { SimulatedRequest } from "../request.ts";

/** Any other path: the body comes back as it came; where there was none, or too much to keep, what was seen of it does. */
export function echo(request: SimulatedRequest): SimulatedResponse {
  const { method, target, headers, bodyBytes } = request;
  const body = request.body();
  if (bodyBytes > 0 && bodyBytes === body.length) {
    const type = request.header("content-type") ?? "application/octet-stream";
    return { status: 200, headers: [["content-type", type]], body, usage: undefined, usageReported: false };
  }
  return jsonAnswer(200, { method, target, headers, body_bytes: bodyBytes, body_sha256: request.bodySha256() });
}
