// The store's contract for GPUs: pushes of samples, the latest of each GPU, and their history by minute and hour.
//
// It keeps true: a push is one transaction, and has a millisecond to itself, since the id of a sample is its time and
// its GPU. An hour is summed up once it is over. The history outlives the samples, and its reports are read in slices.
// Two hosts that send one GPU are told of, and not refused.

import type { Engine } from "../engine/engine.ts";
import type { BucketRange } from "../reports/contract.ts";
import type { KeyId } from "../../domain/keys.ts";
import type { GpuReading } from "../../domain/gpu.ts";

/** `otherHost` is one that has sent this GPU within the last two minutes. */
type GpuSample = Omit<Engine["tables"]["gpuLatest"]["$inferSelect"], "hostChangedAt"> & { recordedAt: number };

/** One post of a GPU host: the readings of its GPUs at one moment. */
export interface GpuPush {
  /** The key that the host authenticated with. */
  keyId: KeyId;
  /** Epoch milliseconds. */
  recordedAt: number;
  host?: string | undefined;
  readings: readonly GpuReading[];
}

/** A GPU that two hosts send. */
export interface SharedGpu {
  gpuId: number;
  /** The sender of the latest sample, then the other one. */
  hosts: readonly [string, string];
}

export interface GpuStore {
  /**
   * Stores a push, updates the latest samples, the history and `lastUsedAt`, and deletes old samples, in one transaction.
   * @returns the GPUs of this push that another host sends too
   */
  add(push: GpuPush): Promise<readonly SharedGpu[]>;
  /** The latest sample of each GPU of the last seven days, ordered by GPU. */
  latest(): Promise<GpuSample[]>;
  /**
   * The highest total of all GPUs of one push in each bucket, oldest first; buckets without a push are left out. Chunks like
   * those of `UsageStore.daily`.
   */
  powerHistory(range: BucketRange): AsyncIterable<Uint8Array>;
  /**
   * Mean power and energy of all GPUs together, or the mean, maximum and last value of each measure of one GPU, in each
   * bucket, oldest first; minutes without a reading are left out. Chunks like those of `UsageStore.daily`.
   */
  history(range: BucketRange, gpuId?: number): AsyncIterable<Uint8Array>;
}
