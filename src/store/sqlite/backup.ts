import { closeSync, existsSync, openSync, readdirSync, rmSync, statfsSync, statSync } from "node:fs";
import type { Log } from "../../log/log.ts";
import type { WallClock } from "../../time/clock.ts";
import { dayNumberOf, msPerDay, msPerMinute, startOfDayNumber } from "../../time/seoul.ts";
import type { DatabaseStore } from "../engine/contract.ts";
import { toStorageError, StorageError } from "../storage-error.ts";
import { removeUnfinishedCopy } from "./copy-database.ts";
import { withWorker } from "./worker-client.ts";
import { join } from "node:path";

export interface Backup {
  /** The database. */
  file: string;
  /** The new file. */
  target: string;
  clock: WallClock;
  /** Stops the backup and removes what it has written. */
  signal?: AbortSignal;
}

/**
 * Copies a database that may be in use, in a Worker of its own so that the caller's thread and its storage Worker go on.
 * @throws StorageError if `target` exists or cannot be written, or if the signal aborts
 */
export async function backupDatabase({ file, target, clock, signal }: Backup): Promise<void> {
  createTarget(target);
  try {
    await withWorker(clock, signal, (call) => call("backup", file, target));
  } catch (error) {
    if (signal?.aborted === true) removeUnfinishedCopy(target);
    throw error;
  }
}

/** Fails if the file exists: a backup never replaces a file, and of two backups to one name only one succeeds. */
function createTarget(target: string): void {
  try {
    closeSync(openSync(target, "wx", 0o600));
  } catch (error) {
    const code = String((error as NodeJS.ErrnoException).code);
    const problem = problemsOfFolder[code];
    throw problem === undefined ? toStorageError(error) : new StorageError(`${problem} (${code})`, { cause: error });
  }
}

/** What else would be said of the data folder. */
const problemsOfFolder: Readonly<Record<string, string>> = {
  EACCES: "its folder is not writable; check its permissions",
  EROFS: "its folder is on a read-only disk",
  ENOTDIR: "its folder is not a folder",
};

/** `20261121T094500Z`: UTC, so that names sort by time and no hour comes twice. */
export const timestampOf = (ms: number): string => new Date(ms).toISOString().replaceAll(/[-:]|\.\d+/g, "");

const nameAt = (ms: number): string => `tollgate-${timestampOf(ms)}.db`;
const namePattern = /^tollgate-\d{8}T\d{6}Z\.db$/;
/** Left by a backup that was killed. Younger ones may still be written. */
const unfinishedPattern = /^tollgate-\d{8}T\d{6}Z\.db(\.partial)?$/;
const unfinishedAfterMs = msPerDay;

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
  tidy({ folder, keep, clock: backup.clock }, name);
  return join(folder, name);
}

/** Deletes the oldest backups but `keep`, and what was left unfinished a day ago. @throws StorageError */
function tidy({ folder, keep, clock }: { folder: string; keep: number; clock: WallClock }, latest: string): void {
  try {
    deleteUnfinished(folder, clock);
    const older = listFinished(folder).filter((other) => other !== latest);
    for (const one of older.toSorted().slice(0, Math.max(0, older.length - (keep - 1)))) rmSync(join(folder, one));
  } catch (error) {
    throw toStorageError(error);
  }
}

/** Names it after the next second if another backup has the name. @returns the name */
async function backUpAt(now: number, folder: string, backup: Omit<Backup, "target">): Promise<string> {
  const name = nameAt(now);
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

/** When and where a server backs its database up. */
export interface BackupPlan {
  /** Never created: it may be a disk that is not mounted. */
  folder: string;
  /** Minutes of the day in Seoul. */
  atMinute: number;
  /** How many backups the folder keeps. */
  keep: number;
}

const retryMs = 60 * msPerMinute;
/** A copy is no larger than the database; the rest is for what is written meanwhile. */
const spaceFactor = 1.2;

/**
 * The backup of each day. It is named after its time, not after that of its making: of several processes, the one that
 * creates the file makes it. A time that passed while no server ran is made up for. Looks once a minute, until it is stopped.
 */
export function createBackups({
  file,
  plan,
  facts,
  clock,
  log,
  freeBytes = bytesFreeIn,
}: {
  file: string;
  plan: BackupPlan;
  facts: Pick<DatabaseStore, "backups" | "recordBackups">;
  clock: WallClock;
  log: Log;
  freeBytes?: ((folder: string) => number) | undefined;
}) {
  const stopping = new AbortController();
  let running: Promise<void> | undefined;
  let triedAt = -Infinity;

  async function backUpIfDue(): Promise<void> {
    const now = clock();
    const name = nameAt(dueBefore(now, plan.atMinute));
    const target = join(plan.folder, name);
    if (existsSync(target)) return;
    const { succeeded, problem } = await facts.backups();
    const wasJustTried = [triedAt, problem?.at ?? -Infinity].some((at) => Math.abs(now - at) < retryMs);
    if (succeeded?.file === name || wasJustTried || stopping.signal.aborted) return;
    triedAt = now;
    let kind: "failed" | "skipped" = "failed";
    try {
      const [free, needed] = [freeBytes(plan.folder), Math.ceil(statSync(file).size * spaceFactor)];
      if (free < needed) kind = "skipped";
      if (free < needed) throw new StorageError(`${free} bytes are free, and it begins with ${needed}`);
      await backupDatabase({ file, target, clock, signal: stopping.signal });
      log.info("Backup written", { file: target, tookMs: clock() - now });
      await facts.recordBackups({ succeeded: { at: clock(), file: name } });
      tidy({ ...plan, clock }, name);
    } catch (error) {
      if (stopping.signal.aborted || (error instanceof Error && isTaken(error))) return;
      const { message: reason } = toStorageError(error);
      log.error(kind === "failed" ? "Backup failed" : "Backup skipped", { folder: plan.folder, reason });
      await facts.recordBackups({ ...(succeeded && { succeeded }), problem: { kind, at: now, reason } });
    }
  }

  /** Makes the latest that is missing, unless it was tried within the hour. Does not overlap, and never rejects. */
  const run = (): Promise<void> =>
    (running ??= backUpIfDue()
      .catch((error: unknown) => log.debug("Backups not known", { error: String(error) }))
      .finally(() => (running = undefined)));
  const timer = setInterval(() => void run(), msPerMinute);
  return {
    run,
    /** Resolves once nothing is written any more. */
    async stop(): Promise<void> {
      clearInterval(timer);
      stopping.abort();
      await running;
    },
  };
}

function dueBefore(now: number, atMinute: number): number {
  const today = startOfDayNumber(dayNumberOf(now)) + atMinute * msPerMinute;
  return today <= now ? today : today - msPerDay;
}

function bytesFreeIn(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}
