import type { SimulatedRequest } from "./request.ts";
import { jsonResponse, type SimulatedResponse } from "./simulated-response.ts";

/** Any other path: returns the body unchanged or, if there is none or it was too large to keep, a description of the request. */
export function echoResponse(request: SimulatedRequest): SimulatedResponse {
  const { method, target, headers, bodyBytes } = request;
  const body = request.body();
  if (bodyBytes > 0 && bodyBytes === body.length) {
    const type = request.header("content-type") ?? "application/octet-stream";
    return { status: 200, headers: [["content-type", type]], body, usage: undefined, usageReported: false };
  }
  return jsonResponse(200, { method, target, headers, body_bytes: bodyBytes, body_sha256: request.bodySha256() });
}
