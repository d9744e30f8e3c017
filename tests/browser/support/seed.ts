import { createLog } from "../../../src/log/log.ts";
import { openStore } from "../../../src/store/open.ts";
import type { KeyChange } from "../../../src/store/keys/contract.ts";
import type { Store } from "../../../src/store/store.ts";
import { usageIncrement } from "../../store/test-store.ts";
import type { GpuReading } from "../../../src/domain/gpu.ts";

/** Fills a data folder before the program opens it. Creating a history through the program would take too long. */
export async function seed(dataDir: string, fill: (store: Store) => Promise<void>): Promise<void> {
  const log = createLog({ level: "error", format: "json", clock: Date.now, write: () => {} });
  const store = await openStore({ dataDir, clock: Date.now, log });
  await fill(store);
  await store.close();
}

export interface KeySeed {
  /** How many keys exist already. */
  seeded?: number;
  /** How long after one key the next is made. */
  apartMs?: number;
  secret?: (index: number) => string;
  rules?: KeyChange["rules"];
}

/** @returns the new ids */
export async function seedKeys(
  store: Store,
  names: readonly string[],
  { seeded = 0, apartMs = 1, secret = (index) => `seeded-key-${index}-0123456789abcdef`, rules }: KeySeed = {},
): Promise<number[]> {
  const ids: number[] = [];
  // Not as late as it is by then: how well a list of keys compresses must not depend on how busy this machine is.
  const firstAt = Date.now() - (names.length - 1) * apartMs;
  for (const [index, name] of names.entries()) {
    const key = await store.keys.create({
      name,
      key: secret(seeded + index),
      createdAt: firstAt + index * apartMs,
      ...(rules && { rules }),
    });
    if (typeof key === "string") throw new Error("The seeded key already exists");
    ids.push(key.id);
  }
  return ids;
}

export const usage = (
  keyId: number,
  minute: number,
  [requestCount, inputTokens, outputTokens]: [number, number, number],
) => usageIncrement({ keyId, minute, requestCount, inputTokens, outputTokens });

export const reading = (gpuId: number, fields: Partial<GpuReading> = {}): GpuReading => ({
  gpuId,
  name: "NVIDIA H200",
  powerDrawW: 300,
  tempC: 55,
  memoryUsedMb: 70_000,
  memoryTotalMb: 143_771,
  utilizationPct: 40,
  ...fields,
});
