import { readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import type { WallClock } from "../../time/clock.ts";
import { toStorageError } from "../storage-error.ts";
import { type Backup, backupDatabase } from "./backup.ts";

/** `20261121T094500Z`: UTC, so that names sort by time and no hour comes twice. */
export const timestampOf = (ms: number): string => new Date(ms).toISOString().replaceAll(/[-:]|\.\d+/g, "");

const namePattern = /^tollgate-\d{8}T\d{6}Z\.db$/;
/** Left by a backup that was killed. Younger ones may still be written. */
const unfinishedPattern = /^tollgate-\d{8}T\d{6}Z\.db(\.partial)?$/;
const unfinishedAfterMs = 24 * 60 * 60 * 1000;

/**
 * Makes a backup that is named after the time, and then deletes the oldest of those that this function made.
 * @returns the new file
 * @throws StorageError if the backup failed, none is deleted then; or if one cannot be deleted
 */
export async function addBackup({
  folder,
  keep,
  ...backup
}: Omit<Backup, "target"> & {
  /** Exists. */
  folder: string;
  /** How many backups the folder keeps. */
  keep: number;
}): Promise<string> {
  const name = await backUpAt(backup.clock(), folder, backup);
  try {
    deleteUnfinished(folder, backup.clock);
    const older = listFinished(folder).filter((other) => other !== name);
    for (const one of older.toSorted().slice(0, Math.max(0, older.length - (keep - 1)))) rmSync(join(folder, one));
  } catch (error) {
    throw toStorageError(error);
  }
  return join(folder, name);
}

/** Names it after the next second if another backup has the name. @returns the name */
async function backUpAt(now: number, folder: string, backup: Omit<Backup, "target">): Promise<string> {
  const name = `tollgate-${timestampOf(now)}.db`;
  try {
    await backupDatabase({ ...backup, target: join(folder, name) });
    return name;
  } catch (error) {
    if (!(error instanceof Error) || !isTaken(error)) throw error;
    return await backUpAt(now + 1000, folder, backup);
  }
}

const isTaken = ({ cause }: { cause?: unknown }): boolean =>
  (cause as NodeJS.ErrnoException | undefined)?.code === "EEXIST";

const listFinished = (folder: string): string[] =>
  readdirSync(folder).filter((name) => namePattern.test(name) && bytesOf(join(folder, name)) > 0);

function deleteUnfinished(folder: string, clock: WallClock): void {
  for (const name of readdirSync(folder).filter((one) => unfinishedPattern.test(one))) {
    const file = join(folder, name);
    const isUnfinished = name.endsWith(".partial") || bytesOf(file) === 0;
    const writtenAt = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? Infinity;
    if (isUnfinished && writtenAt < clock() - unfinishedAfterMs) rmSync(file, { force: true });
  }
}

const bytesOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
