import type { AdminDeps } from "../http/deps.ts";
import { timestampOf } from "../../time/seoul.ts";
import type { ChangeContext } from "../session/auth.ts";
import { ApiError } from "../http/errors.ts";
import { placesOf, queueOf } from "./queue.ts";
import type { RunningBody } from "./contract.ts";
import * as schema from "../http/schemas.ts";
import { subjectOf } from "../../domain/keys.ts";
import { subjectsOf } from "../../domain/usage.ts";

const maxListed = 1000;

export const listInFlight =
  ({
    store,
    clock,
    running,
    catalog,
    backendStates,
  }: Pick<AdminDeps, "store" | "clock" | "running" | "catalog" | "backendStates">) =>
  async (): Promise<RunningBody> => {
    const [all, states] = await Promise.all([running(), backendStates()]);
    const places = placesOf(all);
    const listed = all.slice(0, maxListed);
    const subjects = listed.flatMap(({ keyId, teamId, userId }) =>
      keyId === undefined ? [] : subjectsOf({ keyId, teamId, userId }),
    );
    const names = new Map(await store.requests.keyNames([...new Set(subjects)]));
    const nameOf = (id: number | undefined): string | null =>
      (id === undefined ? undefined : names.get(subjectOf(id))) ?? null;
    const now = clock();
    return {
      requests: listed.map((one) => ({
        id: one.id,
        request_id: one.requestId,
        key_id: one.keyId ?? null,
        key_name: one.keyId === undefined ? null : (names.get(one.keyId) ?? null),
        team_id: one.teamId ?? null,
        team_name: nameOf(one.teamId),
        user_id: one.userId ?? null,
        user_name: nameOf(one.userId),
        address: one.clientAddress,
        method: one.method,
        path: one.path,
        model: one.model ?? null,
        backend: one.backend ?? null,
        state: one.state,
        prefill_tokens: one.prefillTokens ?? null,
        priority: one.priority ?? "normal",
        place: places.get(one) ?? null,
        started_at: timestampOf(now - one.ageMs),
        age_ms: one.ageMs,
        received_bytes: one.receivedBytes,
        // 0 before the backend has reported any: most streams do so at their end.
        output_tokens: one.usage?.outputTokens || null,
        heartbeats_ms: one.heartbeatsMs ?? null,
      })),
      more: all.length > listed.length,
      queue: queueOf(catalog(), states, all),
    };
  };

export const endInFlight =
  ({ store, endRequest, log }: AdminDeps) =>
  async ({ params, actor, by }: ChangeContext & { params: { id: string } }): Promise<schema.OkBody> => {
    if (!(await endRequest(params.id))) throw new ApiError(404, "Request not found");
    await store.audit.add(by);
    log.info("Running request ended by an administrator", { ...actor, id: params.id });
    return { ok: true };
  };
