import type { BackendSign, BackendState, BackendStatus, Choice } from "../domain/backends.ts";
import type { Backend, Catalog, CurrentCatalog } from "../domain/models.ts";
import type { Log } from "../log/log.ts";
import type { MonotonicClock, WallClock } from "../time/clock.ts";
import { type BackendRow, choose, isCrowded, isFull, type Load, type RequestToPlace } from "./choice.ts";
import type { Health } from "./health-rules.ts";
import { watchHealth, type BackendHealth, type HealthOptions } from "./backend-health.ts";

export interface BackendTableOptions extends Omit<HealthOptions, "onChange"> {
  catalog: CurrentCatalog;
  /** How long requests wait while all backends of their model are out; 0: they try one of these. */
  backendWaitMs: number;
  clock: WallClock;
  log: Log;
  /** Called when places may have become free. */
  onFreed: () => void;
  /** Called when a backend no longer takes requests, or does again. */
  onChanged: () => void;
  /** Called when a backend went out, or is another server: it may come back with nothing cached. */
  onOut: (name: string) => void;
}

/**
 * A backend that hangs takes every request, and gives no sign: clients leave before a timeout tells. If it is silent for so
 * long, the next request has it probed, as does one each time that this has passed again. One that reads a long prompt is up.
 */
const maxSilenceMs = 30_000;

/** A place that is free no longer than this was taken all the time. */
const betweenRequestsMs = 1000;

/** What is known of each backend; disposed, none is probed any more. */
export type BackendTable = ReturnType<typeof createBackendTable>;

interface Taken {
  load: Load;
  tokens: number;
  isGiant: boolean;
}

interface Row {
  name: string;
  /** Undefined: the catalog no longer has it, and requests that began before may use it. */
  backend: Backend | undefined;
  watch: BackendHealth;
  inFlight: number;
  load: Load;
  /** Since when it has had requests, and given no sign; undefined: it has given one since its last request. */
  silentSince: number | undefined;
  isDraining: boolean;
  /** Since when all of its places are taken, but for moments; when one was free last. */
  fullSince: number;
  freedAt: number;
  /** Since when its state is what it is. */
  since: number;
}

export function createBackendTable(options: BackendTableOptions) {
  const { catalog, backendWaitMs, clock, monotonic, onFreed, onChanged } = options;
  const draining = new Set<string>();
  const rows = createRows(options, draining);

  /** The only backend is never out if requests do not wait for it to come back: each request tries it. */
  const isWatched = (): boolean => backendWaitMs > 0 || catalog.get().backends.length > 1;

  return {
    findPlace: (candidates: readonly string[], request: RequestToPlace): Choice | undefined =>
      choose(
        candidates.map((name) => rows.describe(name)),
        request,
      ),
    /**
     * How a request waits where backends read one giant at a time; undefined elsewhere.
     * @returns `tokens` is what has to be read where most is cached; `isHeld`: a backend has a place, once others are read
     */
    prefillOf(candidates: readonly string[], { workAt }: Pick<RequestToPlace, "workAt">) {
      const held = candidates.map((name) => rows.describe(name)).filter((row) => row.maxPrefillTokens !== undefined);
      if (held.length === 0) return undefined;
      const tokens = Math.min(...held.map(({ name }) => workAt(name).tokens));
      const isGiant = held.every(({ maxPrefillTokens = Infinity }) => tokens > maxPrefillTokens);
      return { tokens, isGiant, isHeld: held.some((row) => isCrowded(row, { workAt }) && !isFull(row)) };
    },
    /** @param tokens what the backend has to read of the request. @returns what it is part of */
    take(name: string, tokens: number): Pick<Taken, "load" | "isGiant"> {
      const row = rows.open(name);
      row.inFlight += 1;
      const { load } = row;
      load.inFlight += 1;
      load.unbegun += 1;
      load.waitingTokens += tokens;
      const isGiant = tokens > (row.backend?.maxPrefillTokens ?? Infinity);
      if (isGiant) load.giantTokens += tokens;
      const now = monotonic();
      if (row.inFlight === row.backend?.maxConcurrency && now - row.freedAt > betweenRequestsMs)
        row.fullSince = clock();
      row.silentSince ??= now;
      if (now - row.silentSince >= maxSilenceMs && isWatched()) {
        row.silentSince = now;
        row.watch.doubt();
      }
      return { load, isGiant };
    },
    /** The first byte of a request there came. */
    begin(name: string, taken: Taken): void {
      const row = rows.find(name);
      if (row === undefined) return;
      markBegun(taken);
      row.silentSince = undefined;
      if (isWatched()) row.watch.note({ kind: "begun" });
    },
    giveBack(name: string, taken: Taken & { hasBegun: boolean }): void {
      const row = rows.find(name);
      if (row === undefined) return;
      if (row.inFlight === row.backend?.maxConcurrency) row.freedAt = monotonic();
      row.inFlight -= 1;
      taken.load.inFlight -= 1;
      if (!taken.hasBegun) markBegun(taken);
      rows.forgetIdle(row);
    },
    note(name: string, sign: BackendSign): void {
      const row = rows.find(name);
      if (row === undefined) return;
      row.silentSince = undefined;
      if (isWatched()) row.watch.note(sign);
    },
    setDraining(name: string, isDraining: boolean): void {
      if (draining.has(name) === isDraining) return;
      if (isDraining) draining.add(name);
      else draining.delete(name);
      const row = rows.find(name);
      if (row === undefined) return;
      Object.assign(row, { isDraining, since: clock() });
      options.log.info(isDraining ? "Backend draining" : "Backend no longer draining", { backend: name });
      if (!isDraining && isWatched()) row.watch.warmUp();
      onFreed();
      onChanged();
    },
    list: (): Omit<BackendStatus, "waiting">[] =>
      rows.all().map((row) => {
        const { name, since, inFlight, fullSince, backend } = row;
        const status = { name, state: stateOf(row), since, inFlight };
        return inFlight < (backend?.maxConcurrency ?? Infinity) ? status : Object.assign(status, { fullSince });
      }),
    /** Those that take no requests now. */
    shut: (): string[] => rows.all().flatMap(({ name }) => (isShut(rows.describe(name)) ? [name] : [])),
    [Symbol.dispose]() {
      for (const { watch } of rows.all()) watch[Symbol.dispose]();
    },
  };
}

function markBegun({ load, tokens, isGiant }: Taken): void {
  load.unbegun -= 1;
  load.waitingTokens -= tokens;
  if (isGiant) load.giantTokens -= tokens;
}

export const noLoad = (): Load => ({ inFlight: 0, unbegun: 0, waitingTokens: 0, giantTokens: 0 });

/** Those of the catalog, and those that it no longer has until their requests have ended. */
function createRows(options: BackendTableOptions, draining: ReadonlySet<string>) {
  const { catalog, backendWaitMs, clock, monotonic, onFreed, onChanged } = options;
  const rows = new Map<string, Row>();
  takeOver(catalog.get());
  catalog.onReplaced((replaced) => {
    takeOver(replaced);
    onFreed();
    onChanged();
  });

  function open(name: string): Row {
    return rows.getOrInsertComputed(name, () => {
      const watch = watchHealth({ ...options, onChange: (...change) => onHealth(row, ...change) });
      const isDraining = draining.has(name);
      const idle = { inFlight: 0, load: noLoad(), silentSince: undefined, fullSince: clock(), freedAt: -Infinity };
      const row: Row = { name, backend: undefined, watch, ...idle, isDraining, since: clock() };
      return row;
    });
  }

  function onHealth(row: Row, health: Health, before: Health, cause: string | undefined): void {
    const hasTurned = health.isOut !== before.isOut;
    const takesOther = hasTurned || health.isSuspect !== before.isSuspect;
    if (hasTurned) logTurn(row, cause);
    // Whoever waits gets a place before others hear that the backend is back, or that none is in.
    if (takesOther || health.warmUp !== before.warmUp) onFreed();
    if (takesOther) onChanged();
  }

  function logTurn(row: Row, cause: string | undefined): void {
    row.since = clock();
    const { log } = options;
    if (row.watch.health.isOut) {
      row.load = noLoad();
      log.warn("Backend out", { backend: row.name, cause });
      options.onOut(row.name);
    } else log.info("Backend back", { backend: row.name });
  }

  function takeOver({ backends }: Catalog): void {
    for (const { name } of backends) open(name);
    for (const row of rows.values()) {
      const backend = backends.find(({ name }) => name === row.name);
      const isOther = backend?.url !== row.backend?.url;
      if (isOther && !(row.watch.health.isOut && backend !== undefined)) row.since = clock();
      if (isOther) Object.assign(row, { silentSince: undefined, load: noLoad() });
      if (isOther && row.backend !== undefined && backend !== undefined) options.onOut(row.name);
      row.watch.follow(backend);
      row.backend = backend;
      forgetIdle(row);
    }
  }

  function forgetIdle({ name, backend, inFlight, watch }: Row): void {
    if (backend !== undefined || inFlight > 0) return;
    watch[Symbol.dispose]();
    rows.delete(name);
  }

  function describe(name: string): BackendRow {
    const row = rows.get(name);
    // The catalog has it not, or not yet.
    if (row === undefined) return { name, inFlight: 0, standing: "out" };
    const { inFlight, load, watch, backend } = row;
    return {
      name,
      spill: backend?.spill === true,
      maxConcurrency: backend?.maxConcurrency,
      inFlight,
      lost: inFlight - load.inFlight,
      unbegun: load.unbegun,
      waitingTokens: load.waitingTokens,
      giantTokens: load.giantTokens,
      maxPrefillTokens: backend?.maxPrefillTokens,
      warmUp: watch.health.warmUp,
      standing: standingOf(row, backendWaitMs > 0, monotonic),
    };
  }

  return { open, find: (name: string) => rows.get(name), all: () => [...rows.values()], describe, forgetIdle };
}

/** @param waits whether requests wait for a backend to come back */
function standingOf(
  { backend, isDraining, watch: { health } }: Row,
  waits: boolean,
  now: MonotonicClock,
): BackendRow["standing"] {
  if (isDraining) return "closed";
  if (backend === undefined) return "out";
  if (health.isOut) return waits ? "closed" : "out";
  if (health.isSuspect) return waits ? "closed" : "suspect";
  return health.busyUntil > 0 && health.busyUntil > now() ? "busy" : "in";
}

const isShut = ({ standing }: BackendRow): boolean => standing === "out" || standing === "closed";

function stateOf({ backend, isDraining, watch }: Row): BackendState {
  if (isDraining || backend === undefined) return "draining";
  return watch.health.isOut ? "out" : "in";
}
