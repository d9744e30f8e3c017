import { createBackoff } from "../../time/wait.ts";
import type { MonotonicClock } from "../../time/clock.ts";
import {
  type Backend,
  type Catalog,
  type CurrentCatalog,
  type DiscoveredModel,
  type DiscoveredModels,
  modelNamePattern,
} from "../../domain/models.ts";
import { createModelNames, matchable, resolveModel } from "../rewrite/model-names.ts";
import { type ModelEntry, readModelEntries } from "./model-entry.ts";

interface BackendModelsDeps {
  catalog: CurrentCatalog;
  /** The bytes of a backend's list; undefined if it serves none. May reject. */
  fetchList: (backend: Backend, signal: AbortSignal) => Promise<Uint8Array<ArrayBuffer> | undefined>;
  monotonic: MonotonicClock;
  onFailed: (backend: string, error: unknown) => void;
  /** Called with the first name of each kind that a backend lists, for each other backend that has it, until the file changes. */
  onOddName: (kind: OddName, names: { backend: string; other?: string; model: string }) => void;
}

/** No file could have it; another backend has the same, or one that differs in case or in `[1m]` alone. */
export type OddName = "not_allowed" | "shared" | "other_spelling";

/** What the backends of a file say of their models: the last list of each, also of one that is out. */
export type BackendModels = ReturnType<typeof createBackendModels>;

const intervalMs = 30_000;
const timeoutMs = 5000;
/** No backend is asked again sooner. */
const leastMs = 1000;

type Entries = ReadonlyMap<string, ModelEntry>;

/** Asks each backend of a file for its list: at once, every half minute, and after an error. */
export function createBackendModels(deps: BackendModelsDeps) {
  const followed = new Map<string, ReturnType<typeof followBackend>>();
  const told = new Set<string>();
  let index: Index | undefined;
  const onChanged = (): void => void (index = undefined);

  function follow({ file, backends }: Catalog): void {
    onChanged();
    told.clear();
    const wanted = file === undefined ? [] : backends;
    for (const [name, { backend, stop }] of followed) {
      if (wanted.some((one) => one.name === name && isSame(one, backend))) continue;
      stop();
      followed.delete(name);
    }
    for (const backend of wanted) {
      if (!followed.has(backend.name)) followed.set(backend.name, followBackend(backend, deps, onChanged));
    }
  }

  const tell: BackendModelsDeps["onOddName"] = (kind, names) => {
    const once = [kind, names.backend, names.other].join(" ");
    if (!told.has(once) && names.backend !== names.other) deps.onOddName(kind, names);
    told.add(once);
  };
  const indexed = (): Index => (index ??= indexOf(deps.catalog.get(), (name) => followed.get(name)?.entries(), tell));
  follow(deps.catalog.get());
  deps.catalog.onReplaced(follow);
  return {
    discovered: { find: (name) => indexed().get(name), list: () => [...indexed().values()] } as DiscoveredModels,
    /** Resolves once each backend that adds models at the start was asked for them, in vain or not. */
    known: Promise.all([...followed.values()].filter(({ backend }) => backend.discover).map(({ first }) => first)),
    /** The entry of the first of these backends that lists the model. */
    findEntry(backends: readonly string[], servedAs: string): ModelEntry | undefined {
      for (const name of backends) {
        const entry = followed.get(name)?.entries()?.get(servedAs);
        if (entry !== undefined) return entry;
      }
      return undefined;
    },
    /** A request ended with this status: after an error, the lists may be others. */
    requestEnded(status: number): void {
      if (status !== 404 && status < 500) return;
      for (const { backend, askAgain } of followed.values()) if (backend.discover) askAgain();
    },
    stop(): void {
      for (const { stop } of followed.values()) stop();
      followed.clear();
    },
  };
}

const isSame = (a: Backend, b: Backend): boolean =>
  a.baseUrl === b.baseUrl && a.socket === b.socket && a.apiKey === b.apiKey && a.discover === b.discover;

function followBackend(backend: Backend, { fetchList, monotonic, onFailed }: BackendModelsDeps, onChanged: () => void) {
  const stopped = new AbortController();
  const backoff = createBackoff(leastMs, intervalMs);
  let entries: Entries | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let askedAt = monotonic();
  let isAsking = false;

  async function ask(): Promise<void> {
    isAsking = true;
    askedAt = monotonic();
    try {
      const list = await fetchList(backend, AbortSignal.any([stopped.signal, AbortSignal.timeout(timeoutMs)]));
      const found = list && readModelEntries(list);
      if (found !== undefined) backoff.reset();
      schedule(found === undefined ? backoff.next() : intervalMs);
      if (found === undefined) return;
      entries = found;
      onChanged();
    } catch (error) {
      onFailed(backend.name, error);
      schedule(backoff.next());
    } finally {
      isAsking = false;
    }
  }

  function schedule(waitMs: number): void {
    clearTimeout(timer);
    if (!stopped.signal.aborted) timer = setTimeout(() => void ask(), waitMs);
  }

  return {
    backend,
    /** Resolves once it was asked. */
    first: ask(),
    /** Those of its last list; undefined before the first. */
    entries: (): Entries | undefined => entries,
    askAgain(): void {
      if (!isAsking) schedule(Math.max(0, askedAt + leastMs - monotonic()));
    },
    stop(): void {
      stopped.abort();
      clearTimeout(timer);
    },
  };
}

type Index = ReadonlyMap<string, DiscoveredModel>;

const allowedName = new RegExp(modelNamePattern);

/**
 * By name as it is matched: what backends with `discover` list, and the file has under no name, alias or `served_as`. Of two
 * spellings, that of the backend which stands first in the file is the model's name.
 */
function indexOf(
  catalog: Catalog,
  entriesOf: (backend: string) => Entries | undefined,
  tell: BackendModelsDeps["onOddName"],
): Index {
  const names = createModelNames({ ...catalog, defaultModel: undefined });
  const served = new Set(catalog.models.map(({ servedAs }) => servedAs.toLowerCase()));
  const index = new Map<string, { name: string; backends: string[] }>();
  for (const { name: backend, discover } of catalog.backends) {
    if (!discover) continue;
    for (const name of entriesOf(backend)?.keys() ?? []) {
      if (served.has(name.toLowerCase()) || resolveModel(name, names).model !== undefined) continue;
      const known = index.get(matchable(name));
      const [other] = known?.backends ?? [];
      if (!allowedName.test(name)) tell("not_allowed", { backend, model: name });
      else if (known === undefined || other === undefined) index.set(matchable(name), { name, backends: [backend] });
      else {
        tell(known.name === name ? "shared" : "other_spelling", { backend, other, model: name });
        if (known.name === name) known.backends.push(backend);
      }
    }
  }
  return index;
}
