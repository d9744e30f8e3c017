import { Histogram } from "../domain/histogram.ts";
import type { Admissions } from "../admission/admission.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { CurrentCatalog } from "../domain/models.ts";
import type { BackendStates } from "../domain/backends.ts";
import type { UpstreamCheck } from "../proxy/upstream/probe.ts";
import type { Certificate } from "../runtime/certificate.ts";
import type { Store } from "../store/store.ts";
import { countOpenDescriptors, findDescriptorLimit, measureDisk } from "../telemetry/descriptors.ts";
import type { MonotonicClock, WallClock } from "../time/clock.ts";
import { dayNumberOf, minuteOf } from "../time/seoul.ts";
import { within } from "../time/wait.ts";
import type { Facts } from "../watching/state-rules.ts";

export interface FactsOptions {
  store: Store;
  clock: WallClock;
  monotonic: MonotonicClock;
  catalog: CurrentCatalog;
  backendStates: BackendStates;
  /** Asks the only backend. */
  checkBackends: (signal: AbortSignal) => Promise<UpstreamCheck>;
  upstreamFailures: {
    /** Since when no request got a response from it. */
    since: () => number | undefined;
    refused: () => { inQueue: number; ofUsers: Facts["refusedUsers"] };
  };
  ledger: Pick<Ledger, "waiting" | "areCountsWaiting" | "refusedRequests">;
  admissions: Pick<Admissions, "decidedAlone">;
  /** LIMITS_FALLBACK */
  fallback: string;
  /** The one of the start; undefined without HTTPS. */
  certificate: Pick<Certificate, "validTo"> | undefined;
  /** What the parent knows, if there is one. */
  machine?: (() => Promise<Pick<Facts, "modelsFile" | "replaced">>) | undefined;
  /** `PostgreSQL`, or undefined for SQLite, whose disk is measured. */
  server: string | undefined;
  dataDir: string;
  /** BACKUP_DIR is set. */
  makesBackups: boolean;
}

/** Everything is given so long: who asks `/readyz` gets an answer. */
const [askMs, probeMs] = [2000, 1500];
/** A backend is asked, and the tables are read, no more often than this, however often people look. */
const [probeAgeMs, readAgeMs] = [3000, 5000];
const [failingMinutes, slowMinutes] = [5, 10];
/** A clock is looked at so often: it may be wrong for seconds only. */
const clockMs = 1000;
const leastStepMs = 60_000;

/** Finds what is known now. What fails or takes too long is not known. */
export function createFacts(options: FactsOptions) {
  const { store, clock, catalog, backendStates } = options;
  const clockSteps = watchClock(options);
  const usual = createUsualFirstBytes(store.traffic.backends);
  let { certificate } = options;
  /** When the only backend was asked last, and what came of it. */
  let asked: { ok: boolean; cause?: string; at: number } = { ok: true, at: -Infinity };

  async function askOnly(): Promise<UpstreamCheck> {
    if (Math.abs(clock() - asked.at) < probeAgeMs) return asked;
    const check = options.checkBackends(AbortSignal.timeout(probeMs));
    const seen = await within(probeMs, check).catch(() => ({ ok: false, cause: "timeout" }));
    asked = { ...seen, at: clock() };
    return asked;
  }

  async function backendsOf(isAsked: boolean): Promise<Facts["backends"]> {
    const all = await backendStates.list();
    const list = all.map(({ name, state, since }) => ({ name, isOut: state === "out", since }));
    const [only, ...others] = list;
    if (only === undefined || others.length > 0 || only.isOut) return list;
    // It is asked while somebody looks, or where requests fail.
    const since = options.upstreamFailures.since();
    if (!isAsked && asked.ok && since === undefined) return [only];
    const { ok, cause } = await askOnly();
    return [{ name: only.name, isOut: !ok, since, cause }];
  }

  async function readDatabase(now: number): Promise<Partial<Facts>> {
    const end = minuteOf(now) + 1;
    const [recent, ofBytes, samples, draining, [today], schema, users, backups] = await Promise.all([
      store.traffic.backends(end - failingMinutes, end),
      store.traffic.backends(end - slowMinutes, end),
      store.gpu.latest(),
      catalog.get().file === undefined ? [] : store.backends.listDraining(),
      store.reconciliation.days(dayNumberOf(now)),
      store.database.schema(),
      store.subjects.countUsers(),
      options.makesBackups ? store.database.backups() : undefined,
    ]);
    await usual.learn(end - slowMinutes);
    return {
      traffic: recent.map(({ backend, requestCount: requests, errorCount: failed }) => ({ backend, requests, failed })),
      firstBytes: ofBytes.flatMap(({ backend, firstByte }) => usual.compare(backend, firstByte)),
      gpuHosts: [...Map.groupBy(samples, ({ host }) => host ?? "")].map(([host, ones]) => ({
        host,
        at: Math.max(...ones.map((one) => one.recordedAt)),
      })),
      draining,
      schema,
      users,
      backup: backups && {
        lastAt: backups.succeeded?.at,
        ...(backups.problem && { [backups.problem.kind]: backups.problem.reason }),
      },
      outputs: today && { generated: today.generatedTokens, counted: today.countedOutputTokens },
    };
  }

  let read: { at: number; facts: Promise<Partial<Facts> | undefined> } | undefined;
  function readAgain(now: number): Promise<Partial<Facts> | undefined> {
    if (read === undefined || Math.abs(now - read.at) >= readAgeMs) read = { at: now, facts: known(readDatabase(now)) };
    return read.facts;
  }

  return {
    async gather(isAsked: boolean): Promise<Facts> {
      const now = clock();
      const [isWritable, backends, machine, disk, ofTables] = await Promise.all([
        known(store.checkWritable().then(() => true)),
        known(backendsOf(isAsked)),
        options.machine && known(options.machine()),
        options.server === undefined ? known(measureDisk(options.dataDir)) : undefined,
        readAgain(now),
      ]);
      const { waiting, areCountsWaiting, refusedRequests } = options.ledger;
      const { requests, sinceMs } = waiting();
      const refused = options.upstreamFailures.refused();
      return {
        now,
        database: { name: options.server ?? "SQLite", isWritable: isWritable === true },
        counts: { waiting: areCountsWaiting() ? requests : 0, sinceMs, refused: refusedRequests() },
        limits: { fallback: options.fallback, alone: options.admissions.decidedAlone() },
        queue: { refused: refused.inQueue },
        refusedUsers: refused.ofUsers,
        certificate: certificate?.validTo.getTime(),
        modelsFile: catalog.faults?.(),
        backends,
        disk,
        step: clockSteps.latest(),
        descriptors: readDescriptors(),
        ...machine,
        ...ofTables,
      };
    },
    servesCertificate: (renewed: Pick<Certificate, "validTo">): void => void (certificate = renewed),
    close: clockSteps.close,
  };
}

const known = <T>(work: Promise<T>): Promise<T | undefined> => within(askMs, work).catch(() => undefined);

function readDescriptors(): Facts["descriptors"] {
  const limit = findDescriptorLimit();
  return limit === undefined || limit === Infinity ? undefined : { open: countOpenDescriptors(limit), limit };
}

/** The wall clock beside the monotonic one. */
function watchClock({ clock, monotonic }: Pick<FactsOptions, "clock" | "monotonic">) {
  let ahead = clock() - monotonic();
  let step: Facts["step"];
  const timer = setInterval(() => {
    const byMs = clock() - monotonic() - ahead;
    ahead += byMs;
    if (Math.abs(byMs) >= leastStepMs) step = { at: clock(), byMs };
  }, clockMs).unref();
  return { latest: () => step, close: () => clearInterval(timer) };
}

const [portionMinutes, portions] = [6 * 60, 28];

/** The first bytes of each backend over 7 days, read a portion of hours at a time. */
function createUsualFirstBytes(read: Store["traffic"]["backends"]) {
  const learnt = new Map<number, Map<string, string>>();
  return {
    /** Reads one portion that is missing. @param before minute before which all is usual */
    async learn(before: number): Promise<void> {
      const last = Math.floor(before / portionMinutes);
      const wanted = Array.from({ length: portions }, (_, ago) => last - 1 - ago);
      for (const portion of learnt.keys()) if (!wanted.includes(portion)) learnt.delete(portion);
      const missing = wanted.find((portion) => !learnt.has(portion));
      if (missing === undefined) return;
      const sums = await read(missing * portionMinutes, (missing + 1) * portionMinutes);
      learnt.set(missing, new Map(sums.map(({ backend, firstByte }) => [backend, firstByte])));
    },
    compare(backend: string, firstByte: string): NonNullable<Facts["firstBytes"]> {
      const now = new Histogram(firstByte);
      const usual = new Histogram([...learnt.values()].map((sums) => sums.get(backend) ?? "").join(" "));
      const [[medianMs = 0], [usualMs = 0]] = [now.quantiles([0.5]), usual.quantiles([0.5])];
      return usual.count === 0 ? [] : [{ backend, requests: now.count, medianMs, usualMs }];
    },
  };
}
