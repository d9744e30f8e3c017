import { TypeCompiler } from "@sinclair/typebox/compiler";
import { findCredential } from "../../domain/credentials.ts";
import type { KeyId } from "../../domain/keys.ts";
import type { GpuReading } from "../../domain/gpu.ts";
import { pushGpuScript } from "../../gpu-agent/push-gpu-script.ts";
import type { Log } from "../../log/log.ts";
import type { GpuSample } from "../../store/gpu/contract.ts";
import type { Store } from "../../store/store.ts";
import type { WallClock } from "../../time/clock.ts";
import { timestampOf } from "../../time/seoul.ts";
import { acceptedBody, type JsonObject, readJsonObject } from "../http/body.ts";
import { ApiError } from "../http/errors.ts";
import { streamJson } from "../http/json-stream.ts";
import { createPostLimit } from "./post-limit.ts";
import { bucketRange } from "../http/query.ts";
import { gpuEntry, type GpuHistoryQuery, type GpuSampleBody } from "./contract.ts";
import type { HistoryQuery } from "../usage/contract.ts";
import type { OkBody } from "../http/schemas.ts";
import { createSharedGpuLog } from "./shared-gpu-log.ts";

/** A host sends one a second. */
const postLimits = { perSecond: 10, unfinished: 10 };

const maxNameCodePoints = 64;
const entryCheck = TypeCompiler.Compile(gpuEntry);

/**
 * Guard: requires an active API key.
 * @param use what the key has to be for
 * @throws ApiError 401, 403
 */
export const requireApiKey =
  ({ store }: { store: Pick<Store, "keys"> }, use: "gpu" | "inference") =>
  async ({ request }: { request: Request }): Promise<{ keyId: KeyId }> => {
    const key = await store.keys.findActive(findCredential(request.headers) ?? "");
    if (key === undefined) throw new ApiError(401, "Invalid API key", { "www-authenticate": "Bearer" });
    const { scope = "all" } = key.rules ?? {};
    if (scope !== "all" && scope !== use) throw new ApiError(403, refusals[use]);
    return { keyId: key.id };
  };

const refusals = {
  gpu: "This API key may not post GPU samples",
  inference: "This API key may only post GPU samples",
};

export interface GpuSamplesDeps {
  store: Pick<Store, "gpu">;
  clock: WallClock;
  log: Log;
  gpuSamplesReceived: (stored: number, skipped: number) => void;
}

export function addGpuSamples({ store, clock, log, gpuSamplesReceived }: GpuSamplesDeps) {
  const startPost = createPostLimit(postLimits, clock);
  const warnOfSharedGpus = createSharedGpuLog(log, clock);

  return async ({ request, keyId }: { request: Request; keyId: KeyId }): Promise<OkBody> => {
    using _ = startPost(keyId);
    const body = acceptedBody(await readJsonObject(request));
    const { readings, skipped } = parseGpuReadings(body);
    warnOfSharedGpus(await store.gpu.add({ keyId, recordedAt: clock(), host: parseHost(body), readings }));
    gpuSamplesReceived(readings.length, skipped);
    return { ok: true };
  };
}

export const listGpuSamples =
  ({ store }: { store: Pick<Store, "gpu"> }) =>
  async (): Promise<GpuSampleBody[]> =>
    (await store.gpu.latest()).map(gpuSampleBody);

export const listPowerHistory =
  ({ store, clock, log }: { store: Pick<Store, "gpu">; clock: WallClock; log: Log }) =>
  ({ query, request }: { query: HistoryQuery; request: Request }): Promise<Response> => {
    const head = `{"days":${query.days},"bucket_minutes":${query.bucket_minutes},"points":[`;
    return streamJson(request, [head, store.gpu.powerHistory(bucketRange(clock(), query)), "]}"], log);
  };

export const listGpuHistory =
  ({ store, clock, log }: { store: Pick<Store, "gpu">; clock: WallClock; log: Log }) =>
  ({ query, request }: { query: GpuHistoryQuery; request: Request }): Promise<Response> => {
    const head = `{"days":${query.days},"bucket_minutes":${query.bucket_minutes},"points":[`;
    const points = store.gpu.history(bucketRange(clock(), query), query.gpu_id);
    return streamJson(request, [head, points, "]}"], log);
  };

/** Open to everybody, so that a host can fetch it: it contains no secret. */
export const getPushGpuScript = (): Response =>
  new Response(pushGpuScript, { headers: { "content-type": "text/plain;charset=utf-8" } });

/**
 * The readings of one POST. Skips an entry that has a field of a wrong type or out of bounds; null counts as absent,
 * because hosts report it for a sensor that they lack. The last valid entry for a GPU counts, so there are at most 256.
 * @returns the readings, and the number of entries that are not among them
 * @throws ApiError 400 if there is no `gpus` array
 */
export function parseGpuReadings({ gpus }: JsonObject): { readings: GpuReading[]; skipped: number } {
  if (!Array.isArray(gpus)) throw new ApiError(400, "gpus must be an array");
  const readings = new Map<number, GpuReading>();
  for (const entry of gpus as unknown[]) {
    const reading = findReading(entry);
    if (reading !== undefined) readings.set(reading.gpuId, reading);
  }
  return { readings: [...readings.values()], skipped: gpus.length - readings.size };
}

function findReading(entry: unknown): GpuReading | undefined {
  if (!entryCheck.Check(entry) || !isName(entry.name)) return undefined;
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

/** The sender of a POST; undefined if it has no name. @throws ApiError 400 */
export function parseHost({ host }: JsonObject): string | undefined {
  if (host === undefined || host === null) return undefined;
  if (typeof host !== "string") throw new ApiError(400, "host must be a string");
  const name = host.trim().toWellFormed();
  if (name === "") throw new ApiError(400, "host must not be empty");
  if (!isShort(name)) throw new ApiError(400, `host must be at most ${maxNameCodePoints} characters`);
  if (name.includes("\0")) throw new ApiError(400, "host must not contain null characters");
  return name;
}

/** JSON has a negative zero, which passes a minimum of 0. */
function withoutSign(value: number): number;
function withoutSign(value: number | null | undefined): number | null;
function withoutSign(value: number | null | undefined): number | null {
  return typeof value === "number" ? value + 0 : null;
}

/** Null characters: see `requireText` in key-fields.ts. */
const isName = (text: string) => isShort(text) && !text.includes("\0");

const isShort = (text: string) => text.length <= 2 * maxNameCodePoints && Array.from(text).length <= maxNameCodePoints;

function gpuSampleBody(sample: GpuSample): GpuSampleBody {
  return {
    id: sample.id,
    recorded_at: timestampOf(sample.recordedAt),
    gpu_id: sample.gpuId,
    name: sample.name,
    power_draw_w: sample.powerDrawW,
    temp_c: sample.tempC,
    memory_used_mb: sample.memoryUsedMb,
    memory_total_mb: sample.memoryTotalMb,
    utilization_pct: sample.utilizationPct,
    host: sample.host,
    other_host: sample.otherHost,
  };
}
