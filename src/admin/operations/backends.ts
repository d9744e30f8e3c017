import type { AdminDeps } from "../http/deps.ts";
import { type BackendStatus, noBackendCounts } from "../../domain/backends.ts";
import { decodeHistogram, quantilesOf } from "../../domain/histogram.ts";
import type { Backend } from "../../domain/models.ts";
import type { BackendFigures } from "../../store/traffic/contract.ts";
import { minuteOf, minutesPerHour, timestampOf } from "../../time/seoul.ts";
import { bodyParser } from "../http/body-schema.ts";
import { ApiError } from "../http/errors.ts";
import type { OkBody } from "../http/schemas.ts";
import type { JsonContext } from "../session/auth.ts";
import { type BackendBody, backendRequest, type BackendsBody } from "./backends-contract.ts";

export const listBackends =
  ({ store, clock, catalog, discoveredModels, backendStates, watch }: AdminDeps) =>
  async (): Promise<BackendsBody> => {
    const { backends, models: listed, file } = catalog();
    const models = [...listed, ...discoveredModels()];
    const now = clock();
    const minute = minuteOf(now) + 1;
    const [statuses, figures, draining, instances, { states }] = await Promise.all([
      backendStates(),
      store.traffic.backends(minute - minutesPerHour, minute),
      store.backends.listDraining(),
      store.backends.listFiles(),
      watch.ready(),
    ]);
    const failingSince = backends.length === 1 ? states.find(({ kind }) => kind === "backend_out")?.since : undefined;
    return {
      file_hash: file?.hash ?? null,
      instances: instances.map(({ name, fileHash }) => ({ name, file_hash: fileHash })),
      backends: backends.map((backend) =>
        Object.assign(
          describe(backend, statuses.find(({ name }) => name === backend.name) ?? unseen(backend.name, now)),
          { failing_since: failingSince === undefined ? null : timestampOf(failingSince) },
          { models: models.filter((model) => model.backends.includes(backend.name)).map(({ name }) => name) },
          drainOf(draining.find((one) => one.backend === backend.name)),
          figuresOf(figures.find((one) => one.backend === backend.name)),
        ),
      ),
    };
  };

/** The status of a backend that a changed file has just added. */
const unseen = (name: string, since: number): BackendStatus => ({ name, state: "in", since, inFlight: 0, waiting: 0 });

type Figures = Pick<
  BackendBody,
  | "requests_1h"
  | "errors_1h"
  | "first_byte_p50_ms"
  | "first_byte_p95_ms"
  | "output_tokens_per_second"
  | "cached_share"
  | "expected_cached_share"
  | "regret_share"
>;

const describe = (
  { name, url, maxConcurrency, spill }: Backend,
  { state, since, inFlight, waiting }: BackendStatus,
): Omit<BackendBody, "models" | "failing_since" | "taken_out_by" | keyof Figures> => ({
  name,
  url: withoutSecrets(url),
  state,
  since: timestampOf(since),
  in_flight: inFlight,
  waiting,
  max_concurrency: maxConcurrency ?? null,
  spill,
});

type Draining = Awaited<ReturnType<AdminDeps["store"]["backends"]["listDraining"]>>[number];

/** A process that started later does not know it from its own states. */
const drainOf = (draining: Draining | undefined): Pick<BackendBody, "taken_out_by"> & { since?: string } =>
  draining === undefined
    ? { taken_out_by: null }
    : { taken_out_by: draining.username, since: timestampOf(draining.since) };

/** Neither a password nor a query, whatever was accepted. */
function withoutSecrets(given: string): string {
  const url = URL.parse(given);
  if (url === null || !url.protocol.startsWith("http")) return given;
  return url.origin + url.pathname.replace(/\/+$/, "");
}

function figuresOf(figures: BackendFigures | undefined): Figures {
  const firstByte = decodeHistogram(figures?.firstByte ?? "");
  const [p50 = 0, p95 = 0] = quantilesOf(firstByte, [0.5, 0.95]);
  const hasFirstBytes = firstByte.to > 0;
  const { inputTokens, cachedTokens, expectedTokens, regretTokens, streamedTokens, streamedUs } =
    figures ?? noBackendCounts;
  const shareOfInput = (tokens: number): number | null =>
    inputTokens === 0 ? null : Math.min(1, tokens / inputTokens);
  return {
    requests_1h: figures?.requestCount ?? 0,
    errors_1h: figures?.errorCount ?? 0,
    first_byte_p50_ms: hasFirstBytes ? p50 : null,
    first_byte_p95_ms: hasFirstBytes ? p95 : null,
    output_tokens_per_second: streamedUs === 0 ? null : (streamedTokens / streamedUs) * 1_000_000,
    cached_share: shareOfInput(cachedTokens),
    // So it is where there was no choice.
    expected_cached_share: expectedTokens === 0 ? null : shareOfInput(expectedTokens),
    // What a backend does not report may well be cached.
    regret_share: cachedTokens === 0 ? null : shareOfInput(regretTokens),
  };
}

const parseBackendRequest = bodyParser(backendRequest);

export const updateBackend =
  ({ catalog, setDraining, log }: AdminDeps) =>
  async ({ params: { name }, json, actor, by }: JsonContext & { params: { name: string } }): Promise<OkBody> => {
    const { draining } = parseBackendRequest(json);
    if (!catalog().backends.some((backend) => backend.name === name)) throw new ApiError(404, "Backend not found");
    await setDraining(name, draining, by);
    log.info(draining ? "Backend drains: it gets no new requests" : "Backend gets requests again", {
      ...actor,
      backend: name,
    });
    return { ok: true };
  };
