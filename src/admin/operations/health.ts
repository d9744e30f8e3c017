// Health, readiness and what is wrong (here), metrics, the overview, backends, and the settings as they are.
//
// It keeps true: anyone may request `/readyz`, as often as they like, so it looks at most once a second, with a time
// limit, for all who ask. Only the database decides whether the server is ready: of a backend that does not respond a
// state tells. What is wrong is judged by `watching` alone. No secret is shown. Nothing is changed here but which
// backends drain, and which states are silenced.

import type { AdminDeps } from "../http/deps.ts";
import { type ElysiaCustomStatusResponse, status } from "elysia";
import { timestampOf } from "../../time/seoul.ts";
import type { ListedState } from "../../watching/states.ts";
import { bodyParser } from "../http/body-schema.ts";
import { ApiError } from "../http/errors.ts";
import * as schema from "../http/schemas.ts";
import type { ChangeContext, JsonContext } from "../session/auth.ts";
import { type HealthBody, type ReadinessBody, silenceRequest, type StateBody, type StatesBody } from "./contract.ts";
import { isAllowed, type MetricsGuardDeps } from "./metrics.ts";

export const getHealth = (): HealthBody => ({ status: "ok" });

export const getReadiness =
  ({ watch, ...deps }: AdminDeps & MetricsGuardDeps) =>
  async ({ request }: { request: Request }): Promise<ElysiaCustomStatusResponse<200 | 503, ReadinessBody>> => {
    const { isReady, states } = await watch.ready();
    // A database that is away tells nobody's session.
    const isKnown = await isAllowed(deps, request.headers).catch(() => false);
    return status(isReady ? 200 : 503, {
      status: isReady ? "ready" : "unavailable",
      states: states.map(bodyOf).map((body) => (isKnown ? body : { kind: body.kind, since: body.since })),
    });
  };

export const listStates =
  ({ watch }: AdminDeps) =>
  async (): Promise<StatesBody> => {
    const { states, past, unknownSince } = await watch.list();
    return {
      states: states.map(bodyOf),
      past: past.map((one) => Object.assign(bodyOf(one), { until: timestampOf(one.until ?? 0), count: one.count })),
      unknown_since: unknownSince === undefined ? null : timestampOf(unknownSince),
    };
  };

const bodyOf = (state: ListedState): StateBody => {
  const { kind, object, since, what, remedy, instance, silencedUntil, silencedWhy, silencedBy } = state;
  const silenced =
    silencedUntil === null ? null : { until: timestampOf(silencedUntil), why: silencedWhy ?? "", by: silencedBy ?? "" };
  return { kind, object, since: timestampOf(since), what, remedy, instance, silenced };
};

const parseSilence = bodyParser(silenceRequest);

export const silenceState =
  ({ watch, log }: AdminDeps) =>
  async ({ json, actor, by }: JsonContext): Promise<schema.OkBody> => {
    const { kind, instance, until, why } = parseSilence(json);
    const which = { kind, ...(instance !== undefined && { instance }) };
    const states = await watch.silence(which, { until: Date.parse(until), why }, { ...by, id: kind });
    if (states === 0) throw new ApiError(404, "No such state stands");
    log.info("State silenced", { ...actor, ...which, until, why });
    return { ok: true };
  };

export const sendTestNotice =
  ({ testNotice, store }: AdminDeps) =>
  async ({ by }: ChangeContext): Promise<schema.OkBody> => {
    const problem = await testNotice();
    if (problem === null) throw new ApiError(409, "NOTICE_URL is not set");
    await store.audit.add(by);
    if (problem !== undefined) throw new ApiError(502, `NOTICE_URL: ${problem}`);
    return { ok: true };
  };
