import type { RequestRecord, Usage } from "../../src/domain.ts";
import { type RequestRow, requestRowOf } from "../../src/store/request-row.ts";

export const requestRecord = (fields: Partial<RequestRecord> = {}): RequestRecord => ({
  requestId: "req-1",
  clientAddress: "192.0.2.7",
  clientProgram: "OpenAI/Python",
  method: "POST",
  path: "/v1/chat/completions",
  status: 200,
  outcome: "completed",
  keyId: 1,
  modelAsked: "gpt",
  modelSent: "served",
  code: undefined,
  cause: undefined,
  receivedBytes: 321,
  streamed: true,
  backend: "127.0.0.1:8000",
  changes: undefined,
  queueMs: 1.5,
  upstreamMs: 20,
  firstByteMs: 25.25,
  durationMs: 120,
  usage: undefined,
  ...fields,
});

export const requestRow = (
  endedAt: number,
  fields: Partial<RequestRecord> = {},
  usage?: Usage,
  responseId: string | null = null,
): RequestRow => ({ values: requestRowOf(requestRecord(fields), endedAt, usage), responseId });

export const requestsOf = (...rows: RequestRow[]) => ({ rows, amendments: [] });
