import type { Registry } from "prom-client";
import { addGauge } from "./series.ts";

/** What takes time to find out. A value that is undefined has no series; one that rejects keeps the value before. */
export interface SlowValues {
  upstreamUp: () => Promise<boolean>;
  database: () => Promise<{ bytes: number; logBytes?: number | undefined }>;
  /** The disk of DATA_DIR. */
  disk: () => Promise<{ freeBytes: number; sizeBytes: number }>;
  /** When the server's latest backup succeeded, epoch milliseconds; absent if it makes none. */
  backup?: (() => Promise<number | undefined>) | undefined;
}

/**
 * Adds gauges of slow things. A scrape gets the values that were read last and has them read again, so that it waits for
 * neither a backend nor a disk that hangs; the first scrape gets none.
 */
export function addSlowGauges(registry: Registry, { upstreamUp, database, disk, backup }: SlowValues): void {
  const readDatabase = readInBackground(database);
  const readDisk = readInBackground(disk);
  const add = (name: string, aggregator: "min" | "max", help: string, read: () => number | undefined): void =>
    addGauge(registry, name, help, read, aggregator);
  const isUp = readInBackground(async () => Number(await upstreamUp()));
  add("tollgate_upstream_up", "min", "Whether the backend responded at the last scrape", isUp);
  add("tollgate_database_bytes", "max", "Size of the database, in bytes", () => readDatabase()?.bytes);
  const logHelp = "Size of SQLite's write-ahead log, in bytes";
  add("tollgate_database_log_bytes", "max", logHelp, () => readDatabase()?.logBytes);
  add("tollgate_disk_free_bytes", "min", "Free space in DATA_DIR, in bytes", () => readDisk()?.freeBytes);
  add("tollgate_disk_size_bytes", "min", "Size of the disk of DATA_DIR, in bytes", () => readDisk()?.sizeBytes);
  if (backup === undefined) return;
  const help = "When the latest backup of BACKUP_DIR succeeded, in seconds since 1970";
  const succeededAt = readInBackground(backup);
  add("tollgate_backup_last_success_timestamp_seconds", "max", help, () => {
    const at = succeededAt();
    return at && at / 1000;
  });
}

/**
 * @returns the latest value, and starts to find out the next one unless that is under way; it throws if the latest could
 * not be found out
 */
function readInBackground<T>(read: () => Promise<T>): () => T | undefined {
  let readLatest = (): T | undefined => undefined;
  let isReading = false;
  const refresh = async (): Promise<void> => {
    isReading = true;
    try {
      const value = await read();
      readLatest = () => value;
    } catch (error) {
      readLatest = () => {
        throw error;
      };
    }
    isReading = false;
  };
  return () => {
    if (!isReading) void refresh();
    return readLatest();
  };
}
