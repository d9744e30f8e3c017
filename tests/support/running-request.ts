import type { RunningRequest } from "../../src/domain/requests.ts";

/** A request that runs. */
export const runningRequest = (changes: Partial<RunningRequest> = {}): RunningRequest => ({
  requestId: "req-1",
  clientAddress: "192.0.2.7",
  method: "POST",
  path: "/v1/messages",
  keyId: undefined,
  model: undefined,
  backend: undefined,
  state: "running",
  prefillTokens: undefined,
  ageMs: 1,
  receivedBytes: 0,
  usage: undefined,
  heartbeatsMs: undefined,
  ...changes,
});
