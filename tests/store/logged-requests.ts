import type { Store } from "../../src/store/store.ts";
import type { RequestRow } from "../../src/store/requests/contract.ts";
import { requestRowOf } from "../../src/store/requests/row.ts";
import { requestRecord } from "../support/request-record.ts";
import type { RequestRecord } from "../../src/domain/requests.ts";
import type { CountedUsage } from "../../src/domain/usage.ts";

/** With what only the stored log has: the client's program, the backend and the wait in the queue. */
export const loggedRecord = (fields: Partial<RequestRecord> = {}): RequestRecord =>
  requestRecord({
    clientProgram: "OpenAI/Python",
    keyId: 1,
    modelAsked: "gpt",
    receivedBytes: 321,
    backend: "127.0.0.1:8000",
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
  usage?: CountedUsage,
  responseId: string | null = null,
): RequestRow => ({ values: requestRowOf(loggedRecord(fields), endedAt, countedOn(fields.path, usage)), responseId });

/** As Anthropic's backends report: on a path of messages, what came from a cache is beside the input. */
const countedOn = (path: string | undefined, usage: CountedUsage | undefined): CountedUsage | undefined =>
  usage && path?.startsWith("/v1/messages") === true
    ? { cachedBesideInputTokens: usage.cachedInputTokens, ...usage }
    : usage;

export const requestsOf = (...rows: RequestRow[]) => ({ rows, amendments: [] });

/** Writes requests that count nothing. */
export const addRequests = ({ usage }: Pick<Store, "usage">, ...rows: RequestRow[]) =>
  usage.add([], undefined, [], requestsOf(...rows));

/** A request with most fields, as the log lists it. */
export const listedRequest = {
  requestId: "req-1",
  keyId: null,
  keyName: null,
  address: "192.0.2.7",
  client: "OpenAI/Python",
  requestClass: "subagent",
  method: "POST",
  path: "/v1/chat/completions",
  modelAsked: "gpt",
  modelSent: "served",
  backend: "127.0.0.1:8000",
  reason: "load",
  status: 200,
  outcome: "completed",
  code: "upstream_error",
  cause: "ECONNRESET",
  streamed: true,
  uncounted: false,
  inputTokens: 30,
  outputTokens: 4,
  cachedInputTokens: 20,
  reasoningTokens: 3,
  estimatedTokens: 9,
  expectedCachedTokens: 24,
  sends: 2,
  queueMs: 1.5,
  upstreamMs: 20,
  firstByteMs: 25.25,
  durationMs: 120,
  responseBytes: 321,
  maxTokensFrom: 9000,
  maxTokensTo: 512,
  message: null,
  teamId: null,
  teamName: null,
  userId: null,
  userName: null,
  waitedFor: null,
  priority: null,
  traceId: null,
};
