import type { Log } from "../../log/log.ts";
import type { Store } from "../../store/store.ts";
import type { WallClock } from "../../time/clock.ts";
import { timestampOf } from "../../time/seoul.ts";
import type { Actor } from "../session/auth.ts";
import { ApiError } from "../http/errors.ts";
import type { RunningBody } from "./contract.ts";
import type { OkBody } from "../http/schemas.ts";
import type { RunningRequest } from "../../domain/requests.ts";

const maxListed = 1000;

export interface InFlightDeps {
  store: Pick<Store, "requests">;
  clock: WallClock;
  log: Log;
  /** Those of all processes of this instance, oldest first. */
  running: () => Promise<(RunningRequest & { id: string })[]>;
  endRequest: (id: string) => Promise<boolean>;
}

export const listInFlight =
  ({ store, clock, running }: InFlightDeps) =>
  async (): Promise<RunningBody> => {
    const all = await running();
    const listed = all.slice(0, maxListed);
    const keyIds = new Set(listed.flatMap(({ keyId }) => (keyId === undefined ? [] : [keyId])));
    const names = new Map(await store.requests.keyNames([...keyIds]));
    const now = clock();
    return {
      requests: listed.map((one) => ({
        id: one.id,
        request_id: one.requestId,
        key_id: one.keyId ?? null,
        key_name: one.keyId === undefined ? null : (names.get(one.keyId) ?? null),
        address: one.clientAddress,
        method: one.method,
        path: one.path,
        model: one.model ?? null,
        backend: one.backend ?? null,
        state: one.state,
        started_at: timestampOf(now - one.ageMs),
        age_ms: one.ageMs,
        received_bytes: one.receivedBytes,
        // 0 before the backend has reported any: most streams do so at their end.
        output_tokens: one.usage?.outputTokens || null,
      })),
      more: all.length > listed.length,
    };
  };

export const endInFlight =
  ({ endRequest, log }: InFlightDeps) =>
  async ({ params, actor }: { params: { id: string }; actor: Actor }): Promise<OkBody> => {
    if (!(await endRequest(params.id))) throw new ApiError(404, "Request not found");
    log.info("Running request ended by an administrator", { ...actor, id: params.id });
    return { ok: true };
  };
