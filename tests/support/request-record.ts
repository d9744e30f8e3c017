import type { RequestRecord } from "../../src/domain/requests.ts";

/** A streamed chat that has ended. */
export const requestRecord = (fields: Partial<RequestRecord> = {}): RequestRecord => ({
  requestId: "req-1",
  clientAddress: "192.0.2.7",
  method: "POST",
  path: "/v1/chat/completions",
  status: 200,
  outcome: "completed",
  keyId: 7,
  modelAsked: "claude-x",
  modelSent: "served",
  model: "modelSent" in fields ? fields.modelSent : "served",
  code: undefined,
  cause: undefined,
  receivedBytes: 5_000,
  streamed: true,
  upstreamMs: 180,
  firstByteMs: 200,
  durationMs: 42_000,
  usage: { inputTokens: 1200, outputTokens: 350 },
  ...fields,
});
