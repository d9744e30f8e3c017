import { askBackend, type ProbedUpstream, readStart } from "./probe.ts";
import type { Engine, Engines } from "../../domain/backends.ts";
import type { MonotonicClock } from "../../time/clock.ts";

/** How the names of an engine's own metrics begin. */
const engineOfPrefix: Readonly<Record<string, Engine>> = { vllm: "vllm", sglang: "sglang", llamacpp: "llama.cpp" };
const ownMetric = /^(?:# TYPE )?(vllm|sglang|llamacpp):/m;

/** The engine's own metrics stand far in front of this. */
const maxBytes = 256 * 1024;

/**
 * Which program a backend is, by what it serves: its `Server` header, the names of its metrics, its version.
 * @returns undefined if it is none that rules know
 */
export async function findEngine(upstream: ProbedUpstream, signal: AbortSignal): Promise<Engine | undefined> {
  const metrics = await readPage(upstream, "/metrics", signal);
  if (metrics.server?.startsWith("llama.cpp") === true) return "llama.cpp";
  const prefix = metrics.status === 200 ? ownMetric.exec(metrics.text)?.[1] : undefined;
  if (prefix !== undefined) return engineOfPrefix[prefix];
  if (await hasVersion(upstream, "/version", signal)) return "vllm";
  return (await hasVersion(upstream, "/api/version", signal)) ? "ollama" : undefined;
}

async function hasVersion(upstream: ProbedUpstream, path: string, signal: AbortSignal): Promise<boolean> {
  const { status, text } = await readPage(upstream, path, signal);
  return status === 200 && /^\s*\{\s*"version"\s*:\s*"\d/.test(text);
}

/** @returns `text` is its beginning */
async function readPage(upstream: ProbedUpstream, path: string, signal: AbortSignal) {
  const response = await askBackend(upstream, path, signal);
  const text = (await readStart(response, maxBytes)).toString();
  return { status: response.status, server: response.headers.get("server"), text };
}

/** An operator may replace an engine behind an address. */
const refreshMs = 300_000;
/** A backend whose engine the rules do not know, and one that could not be asked. */
const [retryMs, awayMs] = [30_000, 2_000];
const timeoutMs = 2_000;

interface Known {
  engine: Engine | undefined;
  askAgainAt: number;
  /** Undefined once it was asked. */
  first: Promise<void> | undefined;
}

interface NamedUpstream extends ProbedUpstream {
  name: string;
}

export function createEngines({
  backends,
  isIn,
  find,
  monotonic,
}: {
  backends: () => readonly NamedUpstream[];
  /** Whether a backend is in. One that is back is asked again: it may be another engine. */
  isIn: (name: string) => boolean;
  find: typeof findEngine;
  monotonic: MonotonicClock;
}): Engines {
  /** By address: a new catalog may give a name to another backend. */
  const known = new Map<string, Known>();
  const addressOf = ({ baseUrl, socket }: ProbedUpstream): string => `${socket ?? ""} ${baseUrl}`;

  async function ask(upstream: ProbedUpstream, entry: Known): Promise<void> {
    let afterMs = awayMs;
    try {
      const found = await find(upstream, AbortSignal.timeout(timeoutMs));
      // One that is away for a while is what it was.
      entry.engine = found ?? entry.engine;
      afterMs = found === undefined ? retryMs : refreshMs;
    } catch {
      // Away, or mute: soon again.
    }
    entry.askAgainAt = monotonic() + afterMs;
    entry.first = undefined;
  }

  function learnOne(upstream: NamedUpstream): Promise<void> | undefined {
    const address = addressOf(upstream);
    const entry = known.get(address) ?? { engine: undefined, askAgainAt: -Infinity, first: undefined };
    if (!isIn(upstream.name)) {
      entry.askAgainAt = -Infinity;
      return undefined;
    }
    if (monotonic() < entry.askAgainAt) return entry.first;
    const isFirst = !known.has(address);
    known.set(address, entry);
    entry.askAgainAt = Infinity;
    const asked = ask(upstream, entry);
    if (isFirst) entry.first = asked;
    return entry.first;
  }

  return {
    enginesOf(names) {
      const engines: Engine[] = [];
      for (const backend of backends()) {
        const engine = names.includes(backend.name) ? known.get(addressOf(backend))?.engine : undefined;
        if (engine !== undefined) engines.push(engine);
      }
      return engines;
    },
    async learn() {
      await Promise.all(backends().map(async (backend) => await learnOne(backend)));
    },
  };
}
