// Samples of GPUs: posts of their hosts, the latest samples, and their history.
//
// It keeps true: an entry that cannot be read is skipped and counted, and costs the others of its post nothing. The
// time of a sample is the server's. Posts are limited by key, and whoever has one can fill neither the log nor the
// memory with names of hosts. How samples are read is not known here; of the agent it serves the script.

import type { AdminDeps } from "../http/deps.ts";
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { pushGpuScript } from "../../gpu-agent/push-gpu-script.ts";
import type { Log } from "../../log/log.ts";
import type { SharedGpu } from "../../store/gpu/contract.ts";
import type { WallClock } from "../../time/clock.ts";
import { type JsonObject, readJsonObject } from "../http/body.ts";
import { bodyParser, cleanText } from "../http/body-schema.ts";
import { ApiError } from "../http/errors.ts";
import { streamJson } from "../http/json-stream.ts";
import { gpuEntry, type GpuHistoryQuery, type GpuSampleBody, gpuSamplesRequest } from "./contract.ts";
import type { HistoryQuery } from "../usage/contract.ts";
import { apiBody, type OkBody } from "../http/schemas.ts";
import type { KeyId } from "../../domain/keys.ts";
import type { GpuReading } from "../../domain/gpu.ts";
import { bucketRange } from "../usage/ranges.ts";

/** A host sends one a second. */
const postLimits = { perSecond: 10, unfinished: 10 };

export function addGpuSamples({ store, clock, log, gpuSamplesReceived }: AdminDeps) {
  const startPost = createPostLimit(postLimits, clock);
  const warnOfSharedGpus = createSharedGpuLog(log, clock);

  return async ({ request, keyId }: { request: Request; keyId: KeyId }): Promise<OkBody> => {
    using _ = startPost(keyId);
    const { host, readings, skipped } = parseGpuSamples(await readJsonObject(request));
    warnOfSharedGpus(await store.gpu.add({ keyId, recordedAt: clock(), host, readings }));
    gpuSamplesReceived(readings.length, skipped);
    return { ok: true };
  };
}

export const listGpuSamples =
  ({ store }: AdminDeps) =>
  async (): Promise<GpuSampleBody[]> =>
    (await store.gpu.latest()).map(apiBody);

export const listPowerHistory =
  ({ store, clock, log }: AdminDeps) =>
  ({ query, request }: { query: HistoryQuery; request: Request }): Promise<Response> => {
    const head = `{"days":${query.days},"bucket_minutes":${query.bucket_minutes},"points":[`;
    return streamJson(request, [head, store.gpu.powerHistory(bucketRange(clock(), query)), "]}"], log);
  };

export const listGpuHistory =
  ({ store, clock, log }: AdminDeps) =>
  ({ query, request }: { query: GpuHistoryQuery; request: Request }): Promise<Response> => {
    const head = `{"days":${query.days},"bucket_minutes":${query.bucket_minutes},"points":[`;
    const points = store.gpu.history(bucketRange(clock(), query), query.gpu_id);
    return streamJson(request, [head, points, "]}"], log);
  };

/** Open to everybody, so that a host can fetch it: it contains no secret. */
export const getPushGpuScript = (): Response =>
  new Response(pushGpuScript, { headers: { "content-type": "text/plain;charset=utf-8" } });

const parseSamples = bodyParser(gpuSamplesRequest);
const entryCheck = TypeCompiler.Compile(gpuEntry);

/**
 * Reads one POST. Skips an entry that has a field of a wrong type or out of bounds; null counts as absent, because hosts
 * report it for a sensor that they lack. The last valid entry for a GPU counts, so there are at most 256.
 * @throws ApiError 400
 */
export function parseGpuSamples(json: JsonObject | ApiError): {
  /** The sender; undefined if it has no name. */
  host: string | undefined;
  readings: GpuReading[];
  /** The number of entries that are not among the readings. */
  skipped: number;
} {
  const { gpus, host } = parseSamples(json);
  const readings = new Map<number, GpuReading>();
  for (const entry of gpus as unknown[]) {
    const reading = findReading(entry);
    if (reading !== undefined) readings.set(reading.gpuId, reading);
  }
  return {
    host: typeof host === "string" ? cleanText(host) : undefined,
    readings: [...readings.values()],
    skipped: gpus.length - readings.size,
  };
}

function findReading(entry: unknown): GpuReading | undefined {
  if (!entryCheck.Check(entry)) return undefined;
  return {
    gpuId: withoutSign(entry.gpu_id),
    name: entry.name.toWellFormed(),
    powerDrawW: withoutSign(entry.power_draw_w),
    tempC: withoutSign(entry.temp_c),
    memoryUsedMb: withoutSign(entry.memory_used_mb),
    memoryTotalMb: withoutSign(entry.memory_total_mb),
    utilizationPct: withoutSign(entry.utilization_pct),
  };
}

/** JSON has a negative zero, which passes a minimum of 0. */
function withoutSign(value: number): number;
function withoutSign(value: number | null | undefined): number | null;
function withoutSign(value: number | null | undefined): number | null {
  return typeof value === "number" ? value + 0 : null;
}

/** Whoever has a key chooses the names of hosts, and must not fill the log or the memory with them. */
const minLogIntervalMs = 60_000;
const maxLoggedPairs = 100;

/** Logs the GPUs that two hosts send: once for each pair of hosts, and again if their GPUs change. */
function createSharedGpuLog(log: Log, clock: WallClock): (shared: readonly SharedGpu[]) => void {
  const logged = new Map<string, string>();
  let loggedAt = -Infinity;

  return (shared) => {
    for (const [hosts, gpus] of Map.groupBy(shared, (gpu) => gpu.hosts.toSorted().join(", "))) {
      const gpuIds = gpus.map(({ gpuId }) => gpuId).join(", ");
      if (logged.get(hosts) === gpuIds || Math.abs(clock() - loggedAt) < minLogIntervalMs) continue;
      loggedAt = clock();
      if (logged.size === maxLoggedPairs) logged.clear();
      logged.set(hosts, gpuIds);
      log.warn("Two hosts send the same GPU ids; set --gpu-id-offset on one of them", { hosts, gpuIds });
    }
  };
}

/** @returns to be disposed of when the POST has ended. @throws ApiError 429 */
export type StartPost = (keyId: KeyId) => Disposable;

/** Limits the POSTs of each key at this process. */
export function createPostLimit(
  {
    perSecond,
    unfinished,
  }: {
    /** In any second. */
    perSecond: number;
    /** That have not ended: a body may arrive slowly. */
    unfinished: number;
  },
  clock: WallClock,
): StartPost {
  /** An entry for each key that posted: administrators create them, so there are few. */
  const posts = new Map<KeyId, { startedAt: readonly number[]; open: number }>();

  return (keyId) => {
    const now = clock();
    const post = posts.getOrInsert(keyId, { startedAt: [], open: 0 });
    // Those in the future are from before the clock was set back.
    post.startedAt = post.startedAt.filter((at) => at > now - 1000 && at <= now);
    if (post.startedAt.length >= perSecond || post.open >= unfinished) throw tooManyPosts(perSecond);
    post.startedAt = [...post.startedAt, now];
    post.open += 1;
    return { [Symbol.dispose]: () => void (post.open -= 1) };
  };
}

const tooManyPosts = (perSecond: number): ApiError =>
  new ApiError(429, `Too many POSTs with this key, at most ${perSecond} a second`, { "retry-after": "1" });
