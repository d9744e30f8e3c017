// A POST of a GPU host: its limits, its body, and who else sends the same GPUs. An entry that is wrong is left out.

import { TypeCompiler } from "@sinclair/typebox/compiler";
import { type TSchema, Type as t } from "@sinclair/typebox";
import type { AdminDeps } from "../http/deps.ts";
import type { Log } from "../../log/log.ts";
import type { SharedGpu } from "../../store/gpu/contract.ts";
import type { WallClock } from "../../time/clock.ts";
import { type JsonObject, readJsonObject } from "../http/body.ts";
import { bodyParser, cleanText, checkedBy, hasAtMost, text } from "../http/body-schema.ts";
import { ApiError } from "../http/errors.ts";
import * as schema from "../http/schemas.ts";
import type { KeyId } from "../../domain/keys.ts";
import type { GpuReading } from "../../domain/gpu.ts";

export const gpuIds = { minimum: 0, maximum: 255 };
const orNull = <S extends TSchema>(type: S) => t.Optional(schema.nullable(type));

const maxNameLength = 64;
/** Without null characters, which PostgreSQL cannot store in text. */
const isName = (value: unknown): boolean =>
  typeof value === "string" && hasAtMost(maxNameLength, value) && !value.includes("\0");

const gpuEntry = t.Object({
  gpu_id: t.Integer(gpuIds),
  name: checkedBy(
    (value) => (isName(value) ? undefined : "name is invalid"),
    t.String({ description: `At most ${maxNameLength} code points` }),
  ),
  power_draw_w: orNull(t.Number({ minimum: 0, maximum: 10_000 })),
  temp_c: orNull(t.Integer({ minimum: 0, maximum: 150 })),
  memory_used_mb: orNull(t.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  memory_total_mb: orNull(t.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  utilization_pct: orNull(t.Integer({ minimum: 0, maximum: 100 })),
});
/** Accepts any entries, because the route skips invalid ones. */
const gpuSamplesRequest = t.Object({
  gpus: checkedBy(
    (value) => (Array.isArray(value) ? undefined : "gpus must be an array"),
    t.Array(gpuEntry, { description: "Invalid entries are skipped; the last valid entry for a gpu_id counts" }),
  ),
  host: orNull(text("host", { maxLength: 64, description: "Names the sender" })),
});
export const addGpuSamplesContract = schema.takesBody(
  "Store the samples of a GPU host",
  gpuSamplesRequest,
  { 200: schema.okBody },
  429,
);

/** A host sends one a second. */
const postLimits = { perSecond: 10, unfinished: 10 };

export function addGpuSamples({ store, clock, log, gpuSamplesReceived }: AdminDeps) {
  const startPost = createPostLimit(postLimits, clock);
  const warnOfSharedGpus = createSharedGpuLog(log, clock);

  return async ({ request, keyId }: { request: Request; keyId: KeyId }): Promise<schema.OkBody> => {
    using _ = startPost(keyId);
    const { host, readings, skipped } = parseGpuSamples(await readJsonObject(request));
    warnOfSharedGpus(await store.gpu.add({ keyId, recordedAt: clock(), host, readings }));
    gpuSamplesReceived(readings.length, skipped);
    return { ok: true };
  };
}

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
      const listed = gpus.map(({ gpuId }) => gpuId).join(", ");
      if (logged.get(hosts) === listed || Math.abs(clock() - loggedAt) < minLogIntervalMs) continue;
      loggedAt = clock();
      if (logged.size === maxLoggedPairs) logged.clear();
      logged.set(hosts, listed);
      log.warn("Two hosts send the same GPU ids; set --gpu-id-offset on one of them", { hosts, gpuIds: listed });
    }
  };
}

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
) {
  /** An entry for each key that posted: administrators create them, so there are few. */
  const posts = new Map<KeyId, { startedAt: readonly number[]; open: number }>();

  /** @returns to be disposed of when the POST has ended. @throws ApiError 429 */
  return (keyId: KeyId): Disposable => {
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
