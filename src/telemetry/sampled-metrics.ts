import type { Registry } from "prom-client";
import { addGauge } from "./series.ts";

/** What takes time to find out. A value that is undefined has no series; one that rejects keeps the value before. */
export interface Samples {
  upstreamUp: () => Promise<boolean>;
  database: () => Promise<{ bytes: number; logBytes?: number | undefined }>;
  /** The disk of DATA_DIR. */
  disk: () => Promise<{ freeBytes: number; sizeBytes: number }>;
}

/**
 * Adds gauges of slow things. A scrape gets the values of the last sampling and starts the next one, so that it waits for
 * neither a backend nor a disk that hangs; the first scrape gets none.
 */
export function addSampledMetrics(registry: Registry, { upstreamUp, database, disk }: Samples): void {
  const readUpstream = sampled(upstreamUp);
  addGauge(
    registry,
    { name: "tollgate_upstream_up", help: "Whether the backend responded at the last scrape", aggregator: "min" },
    () => toNumber(readUpstream()),
  );
  const readDatabase = sampled(database);
  addGauge(
    registry,
    { name: "tollgate_database_bytes", help: "Size of the database, in bytes", aggregator: "max" },
    () => readDatabase()?.bytes,
  );
  addGauge(
    registry,
    { name: "tollgate_database_log_bytes", help: "Size of SQLite's write-ahead log, in bytes", aggregator: "max" },
    () => readDatabase()?.logBytes,
  );
  const readDisk = sampled(disk);
  addGauge(
    registry,
    { name: "tollgate_disk_free_bytes", help: "Free space in DATA_DIR, in bytes", aggregator: "min" },
    () => readDisk()?.freeBytes,
  );
  addGauge(
    registry,
    { name: "tollgate_disk_size_bytes", help: "Size of the disk of DATA_DIR, in bytes", aggregator: "min" },
    () => readDisk()?.sizeBytes,
  );
}

const toNumber = (isUp: boolean | undefined): number | undefined => (isUp === undefined ? undefined : Number(isUp));

/**
 * @returns the latest value, and starts to find out the next one unless that is under way; it throws if the latest could
 * not be found out
 */
function sampled<T>(sample: () => Promise<T>): () => T | undefined {
  let readLatest = (): T | undefined => undefined;
  let isSampling = false;
  const refresh = async (): Promise<void> => {
    isSampling = true;
    try {
      const value = await sample();
      readLatest = () => value;
    } catch (error) {
      readLatest = () => {
        throw error;
      };
    }
    isSampling = false;
  };
  return () => {
    if (!isSampling) void refresh();
    return readLatest();
  };
}
