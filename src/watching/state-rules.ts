// What can be wrong: one table, kind by kind. `find` is the whole judgement of a kind: when it comes and, by `stands`,
// when it goes. The handbook says the same in words. One whose facts are not known stays as it was, and one that cannot
// occur here has none. Pure: `server/facts.ts` finds the facts.

import { minutesPerDay, msPerMinute } from "../time/seoul.ts";

/** What is known now; times are epoch milliseconds. A fact that is not known, or means nothing here, is absent. */
export interface Facts {
  now: number;
  database?: { name: string; isWritable: boolean } | undefined;
  counts?: { waiting: number; sinceMs: number; refused: number } | undefined;
  /** The keys and teams whose limits this process decides on alone, and what each was admitted; undefined: none. */
  limits?: { fallback: string; alone: readonly { id: number; requests: number }[] | undefined } | undefined;
  /** Why the file of models was refused; none: it is in use. */
  modelsFile?: readonly string[] | undefined;
  backends?:
    | readonly { name: string; isOut: boolean; since?: number | undefined; cause?: string | undefined }[]
    | undefined;
  draining?: readonly { backend: string; since: number }[] | undefined;
  /** Of the last 5 minutes. */
  traffic?: readonly { backend: string; requests: number; failed: number }[] | undefined;
  /** Medians of 10 minutes and of the 7 days before, in milliseconds. */
  firstBytes?: readonly { backend: string; requests: number; medianMs: number; usualMs: number }[] | undefined;
  /** Requests that it refused in the last 5 minutes. */
  queue?: { refused: number } | undefined;
  /** How many requests of the last 5 minutes had a user's token that does not fit their key, by its id. */
  refusedUsers?: ReadonlyMap<number, number> | undefined;
  /** How many users keys have, of those that tell them apart. */
  users?: readonly { key: string; users: number; max: number }[] | undefined;
  /** When the certificate ends. */
  certificate?: number | undefined;
  /** The last step of the clock. */
  step?: { at: number; byMs: number } | undefined;
  /** When children were replaced, oldest first. */
  replaced?: readonly number[] | undefined;
  disk?: { freeBytes: number; sizeBytes: number } | undefined;
  descriptors?: { open: number; limit: number } | undefined;
  /** When each host pushed last. */
  gpuHosts?: readonly { host: string; at: number }[] | undefined;
  /** Output tokens of today, by the backend and as counted. */
  outputs?: { generated: number; counted: number } | undefined;
  /** Absent where nothing makes backups. */
  backup?: { lastAt: number | undefined; failed?: string | undefined; skipped?: string | undefined } | undefined;
  schema?: { isNewer: boolean; mayWrite: boolean } | undefined;
}

interface Found {
  /** Which one of its kind, such as a backend's name; unset where there can be one. */
  object?: string;
  what: string;
  /** Since when, where the facts say it. */
  since?: number | undefined;
  /** How many it is about. While it stands, the highest is kept, with its text. */
  count?: number;
}

export interface Row {
  /** Who has it: each process, a machine with all of its processes, or all that share the database. */
  of: "process" | "instance" | "all";
  remedy: string;
  /** @param stands whether it was told of that object before. @returns undefined if that is not known */
  find: (facts: Facts, stands: (object: string) => boolean) => Found[] | undefined;
}

const [hour, day] = [60 * msPerMinute, minutesPerDay * msPerMinute];
const tenMinutes = 10 * msPerMinute;
const gigabyte = 1e9;
const inText = (ms: number): string => (ms >= day ? `${Math.floor(ms / day)} days` : `${Math.floor(ms / hour)} hours`);

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** Of a kind that there can be one of. */
const only = (isSo: boolean, what: string, more: Omit<Found, "what"> = {}): Found[] =>
  isSo ? [{ what, ...more }] : [];

/** The worst first. */
export const kinds = {
  database_away: {
    of: "process",
    remedy: "Make PostgreSQL reachable, or free the disk of DATA_DIR. Do not kill the process: it holds what waits.",
    find: ({ database, counts, limits }) => {
      const [waiting, keys] = [counts?.waiting ?? 0, limits?.alone?.length ?? 0];
      const ofCounts = waiting > 0 ? `, ${counted(waiting, "count")} waited, none lost` : "";
      const ofLimits = keys > 0 ? `, limits by share for ${counted(keys, "key")}` : "";
      return database && only(!database.isWritable, `${database.name} away${ofCounts}${ofLimits}`, { count: waiting });
    },
  },
  counts_refused: {
    of: "process",
    remedy: "A trigger or constraint of yours refuses them: mend it, and restart. The log has all their numbers.",
    find: ({ counts }) =>
      counts &&
      only(counts.refused > 0, `Counts of ${counted(counts.refused, "request")} refused`, { count: counts.refused }),
  },
  counts_waiting: {
    of: "process",
    remedy: "See that the database can be written. Do not kill the process: it holds these counts.",
    find: ({ counts }, stands) =>
      counts &&
      only(
        counts.waiting > 0 && (counts.sinceMs >= 30_000 || stands("")),
        `${counted(counts.waiting, "count")} waited in memory`,
        { count: counts.waiting },
      ),
  },
  limits_by_share: {
    of: "process",
    remedy: "See that the database answers within a second. Until then LIMITS_FALLBACK says what holds.",
    find: ({ limits }) =>
      limits && only(limits.alone !== undefined, byShareText(limits), { count: limits.alone?.length ?? 0 }),
  },
  schema_newer: {
    of: "all",
    remedy: "Restart this process with the newer build.",
    find: ({ schema }) => {
      const loss = schema?.mayWrite === false ? ", and this one would lose counts" : "";
      return schema && only(schema.isNewer, `A newer build migrated the database${loss}`);
    },
  },
  backend_out: {
    of: "instance",
    remedy: "See that its server runs and that this machine reaches it: tollgate check asks it as Tollgate does.",
    find: ({ backends }) =>
      backends
        ?.filter(({ isOut }) => isOut)
        .map(({ name, since, cause }) => ({
          object: name,
          what: `${name} does not respond${cause === undefined ? "" : ` (${cause})`}`,
          since,
        })),
  },
  disk: {
    of: "instance",
    remedy: "Make room on the disk of DATA_DIR, or lower REQUEST_LOG_DAYS, REQUEST_LOG_ROWS or USAGE_MINUTES_DAYS.",
    find: ({ disk }) =>
      disk &&
      only(
        disk.freeBytes < 0.05 * disk.sizeBytes && disk.freeBytes < 20 * gigabyte,
        `${(disk.freeBytes / gigabyte).toFixed(1)} GB free in DATA_DIR`,
      ),
  },
  descriptors: {
    of: "process",
    remedy: "Raise LimitNOFILE of the service, or ulimit -n: each stream takes two.",
    find: ({ descriptors: all }, stands) =>
      all && only(all.open > (stands("") ? 0.7 : 0.8) * all.limit, `${all.open} of ${all.limit} file descriptors open`),
  },
  models_file_refused: {
    of: "instance",
    remedy: "Correct the file: tollgate models names each fault. A restart would end with status 2.",
    find: ({ modelsFile: faults }) => faults && only(faults.length > 0, `MODELS_FILE is refused: ${faults[0]}`),
  },
  backend_failing: {
    of: "all",
    remedy: "Its log says why. The page Requests lists them: filter by the backend and by failures.",
    find: ({ traffic }, stands) =>
      traffic
        ?.filter(({ backend, requests, failed }) =>
          stands(backend) ? failed > 0 && failed >= 0.01 * requests : failed >= 5 && failed >= 0.05 * requests,
        )
        .map(({ backend, requests, failed }) => ({
          object: backend,
          what: `${failed} of ${requests} requests to ${backend} failed in 5 minutes`,
          count: failed,
        })),
  },
  queue_refuses: {
    of: "process",
    remedy: "Add a backend, or raise PROXY_MAX_CONCURRENCY, PROXY_QUEUE_SIZE or PROXY_QUEUE_TIMEOUT.",
    find: ({ queue }) =>
      queue &&
      only(queue.refused > 0, `The queue refused ${counted(queue.refused, "request")} in 5 minutes`, {
        count: queue.refused,
      }),
  },
  user_source_refuses: {
    of: "process",
    remedy: "The key's secret and the front end's differ: give the key the front end's as its users_secret.",
    find: ({ refusedUsers: all }) =>
      all &&
      Array.from(all, ([id, count]) => ({
        object: nameOf(id),
        what: `The users' tokens of ${counted(count, "request")} with ${nameOf(id)} were refused in 5 minutes`,
        count,
      })),
  },
  child_replaced: {
    of: "instance",
    remedy: "The log says with which status each exited. Status 137: the system killed it, often for lack of memory.",
    find: ({ replaced, now }, stands) => {
      const recent = replaced?.filter((at) => now - at < tenMinutes).length ?? 0;
      const isSo = recent >= 3 || (stands("") && recent > 0);
      return replaced && only(isSo, `${recent} worker processes replaced in 10 minutes`, { count: recent });
    },
  },
  certificate: {
    of: "instance",
    remedy: "Renew TLS_CERT and TLS_KEY. Renewed files are used without a restart.",
    find: ({ certificate: end, now }) => {
      if (end === undefined) return undefined;
      return only(
        end - now <= 14 * day,
        `The certificate ${end > now ? `expires in ${inText(end - now)}` : "has expired"}`,
      );
    },
  },
  backup_failed: {
    of: "all",
    remedy: "See that BACKUP_DIR exists and can be written.",
    find: ({ backup }) => backup && only(backup.failed !== undefined, `A backup failed: ${backup.failed}`),
  },
  backup_old: {
    of: "all",
    remedy: "The log says why none was made at BACKUP_AT.",
    find: ({ backup, now }) => {
      const age = now - (backup?.lastAt ?? now);
      return backup && only(age >= 36 * hour, `The last backup is ${inText(age)} old`);
    },
  },
  backup_skipped: {
    of: "all",
    remedy: "Make room in BACKUP_DIR, or lower BACKUP_KEEP.",
    find: ({ backup }) => backup && only(backup.skipped !== undefined, `A backup was skipped: ${backup.skipped}`),
  },
  backend_slow: {
    of: "all",
    remedy: "Look for other programs on its GPUs, long prompts and a cold cache. The page Backends has its figures.",
    find: ({ firstBytes }, stands) =>
      firstBytes
        ?.filter(({ backend, requests, medianMs, usualMs }) =>
          stands(backend) ? medianMs >= 2 * usualMs : requests >= 20 && medianMs >= 4 * usualMs,
        )
        .map(({ backend, medianMs, usualMs }) => ({
          object: backend,
          what: `The first byte of ${backend} takes ${Math.round(medianMs)} ms, usually ${Math.round(usualMs)} ms`,
        })),
  },
  clock_stepped: {
    of: "instance",
    remedy: "See that time synchronisation runs. What was counted meanwhile stands under the time that the clock had.",
    find: ({ step, now }) =>
      step && only(Math.abs(now - step.at) < hour, `The clock stepped by ${Math.round(step.byMs / 1000)} s`),
  },
  gpu_silent: {
    of: "all",
    remedy: "See that tollgate push-gpu runs on that host and reaches this address.",
    find: ({ gpuHosts, now }) =>
      gpuHosts
        ?.filter(({ at }) => now - at > msPerMinute)
        .map(({ host, at }) => ({ object: host, what: `${host || "A GPU host"} sends no GPU samples`, since: at })),
  },
  users_nearly_full: {
    of: "all",
    remedy: "Raise users_max of the key. Users beyond it are one, named other, whose usage cannot be told apart.",
    find: ({ users: all }) =>
      all
        ?.filter(({ users, max }) => users >= 0.9 * max)
        .map(({ key, users, max }) => ({ object: key, what: `${key} has ${users} of at most ${max} users` })),
  },
  drift: {
    of: "all",
    remedy:
      "Look for clients that reach the backend directly, and for streams without usage: PROXY_FORCE_STREAM_USAGE.",
    find: ({ outputs }) => {
      if (outputs === undefined) return undefined;
      const share = differenceOf(outputs) / Math.max(1, outputs.generated);
      const what = `Counts and the backend's differ by ${(share * 100).toFixed(1)}% of today's output`;
      return only(isDrifting(outputs), what);
    },
  },
  taken_out: {
    of: "all",
    remedy: "Put it back on the page Backends, or take it out of MODELS_FILE.",
    find: ({ draining, now }) =>
      draining
        ?.filter(({ since }) => now - since >= day)
        .map(({ backend, since }) => ({ object: backend, what: `${backend} was taken out`, since })),
  },
} satisfies Record<string, Row>;

export type Kind = keyof typeof kinds;

const differenceOf = (of: NonNullable<Facts["outputs"]>): number => Math.abs(of.generated - of.counted);

/** Of a day. Requests that run at midnight, or were cut, always make a small difference. */
export const isDrifting = (outputs: NonNullable<Facts["outputs"]>): boolean =>
  differenceOf(outputs) > Math.max(10_000, 0.01 * outputs.generated);

const shownKeys = 8;

/** Teams are the numbers below 0. */
const nameOf = (id: number): string => (id < 0 ? `team ${-id}` : `key ${id}`);

function byShareText({ fallback, alone = [] }: NonNullable<Facts["limits"]>): string {
  const shown = alone
    .slice(0, shownKeys)
    .map(({ id, requests }) => `, ${nameOf(id)}: ${counted(requests, "request")} a minute`);
  const more = alone.length > shownKeys ? `, and ${alone.length - shownKeys} more` : "";
  return `Limits are not exact (LIMITS_FALLBACK ${fallback})${shown.join("")}${more}`;
}
