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
