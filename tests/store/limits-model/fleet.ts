import type { Subprocess } from "bun";
import { hasLimit } from "../../../src/domain/limits.ts";
import { type KeyId, type KeyLimits, subjectOf, type TeamId, type UserId } from "../../../src/domain/keys.ts";
import type { FromInstance, InstanceOptions, ToInstance } from "./messages.ts";
import type { Observed } from "./oracle.ts";

export interface Request {
  keyId: KeyId;
  limits: KeyLimits;
  /** The key's team at that moment. */
  team?: { id: TeamId; limits: KeyLimits } | undefined;
  /** Whose request it is. */
  user?: { id: UserId; limits: KeyLimits } | undefined;
  tokens: number;
  /** How long the backend works for it. */
  runMs: number;
  /** What the backend then generates; null: the response does not count, as of an error or of one that broke. */
  generates: number | null;
  /** Its client leaves before the backend has it: it does not count at all. */
  isLeft?: boolean;
}

/** Instances of the model on one database. It is their clients and their backend, and writes down what both see. */
export interface Fleet extends AsyncDisposable {
  observed: readonly Observed[];
  warnings: readonly string[];
  /** Resolves when the client and the instance are done with it, or the instance is dead. */
  send(instance: number, request: Request): Promise<Observed>;
  kill(instance: number): Promise<void>;
  /** Starts another one in its place, under the same number. */
  replace(instance: number): Promise<void>;
  stop(instance: number): void;
  wake(instance: number): void;
  /** How many instances there ever were. */
  started(): number;
}

interface Instance {
  process: Subprocess;
  ready: PromiseWithResolvers<void>;
  open: Map<number, OpenRequest>;
}

interface OpenRequest {
  observed: Observed;
  request: Request;
  done: PromiseWithResolvers<Observed>;
}

/** @param skews by how much the clock of each instance is ahead */
export async function startFleet(options: Omit<InstanceOptions, "skewMs">, skews: readonly number[]): Promise<Fleet> {
  const observed: Observed[] = [];
  const warnings: string[] = [];
  let lastNumber = 0;
  let started = 0;

  function launch(index: number): Instance {
    started += 1;
    const own: InstanceOptions = { ...options, skewMs: skews[index] ?? 0 };
    const open: Instance["open"] = new Map();
    const ready = Promise.withResolvers<void>();
    const child = Bun.spawn([process.execPath, `${import.meta.dir}/instance.ts`, JSON.stringify(own)], {
      stdio: ["ignore", "inherit", "inherit"],
      ipc: (message: FromInstance) => onMessage(message, { process: child, ready, open }),
      onExit: () => {
        ready.reject(new Error("An instance exited"));
        for (const one of open.values()) finish(one, (at) => (one.observed.killedAt = at));
        open.clear();
      },
    });
    ready.promise.catch(() => {});
    return { process: child, ready, open };
  }

  function finish(one: OpenRequest, mark: (at: number) => unknown): void {
    mark(Date.now());
    one.observed.backendEndedAt = Math.min(one.observed.backendEndedAt, Date.now());
    one.done.resolve(one.observed);
  }

  function onMessage(message: FromInstance, { ready, open, process: child }: Instance): void {
    if (message.kind === "ready") return ready.resolve();
    if (message.kind === "warned") return void warnings.push(message.text);
    const one = open.get(message.number);
    if (one === undefined) return;
    if (message.kind === "decided") {
      const { askedAt, decidedAt, refusedBy, at: by, used } = message;
      Object.assign(one.observed, { askedAt, decidedAt, refusedBy, at: by, reports: used });
      if (refusedBy === undefined) return void setTimeout(respond, one.request.runMs, message.number, one, child);
    }
    open.delete(message.number);
    if (message.kind === "ended") one.observed.mayWait = message.mayWait;
    finish(one, () => (one.observed.endedAt = message.kind === "ended" ? message.at : message.decidedAt));
  }

  /** The backend is done. */
  function respond(number: number, { observed: own, request }: OpenRequest, child: Subprocess): void {
    if (own.killedAt < Infinity) return;
    own.backendEndedAt = Date.now();
    own.generated = request.generates;
    tell(child, { kind: "respond", number, tokens: request.generates, isSent: !own.isLeft });
  }

  const fleet = skews.map((_, index) => launch(index));
  const at = (index: number): Instance => {
    const found = fleet[index];
    if (found === undefined) throw new Error(`There is no instance ${index}`);
    return found;
  };
  await Promise.all(fleet.map(({ ready }) => ready.promise));

  async function kill(index: number): Promise<void> {
    at(index).process.kill("SIGKILL");
    const killedAt = Date.now();
    for (const one of observed) {
      if (one.instance === index && one.endedAt < Infinity && one.endedAt > killedAt - upkeepMs)
        one.killedAt = killedAt;
    }
    await at(index).process.exited;
  }

  return {
    observed,
    warnings,
    send(index, request) {
      const { process: child, open } = at(index);
      const number = ++lastNumber;
      const { keyId, team, user, limits, tokens, isLeft = false } = request;
      const all = [
        { id: keyId, limits },
        ...[user, team].flatMap((one) => (one === undefined ? [] : [{ id: subjectOf(one.id), limits: one.limits }])),
      ];
      const subjects = all.filter((one) => hasLimit(one.limits));
      const ids = all.map(({ id }) => id);
      const sentAt = Date.now();
      const own: Observed = { keyId, limits, subjects, ids, tokens, isLeft, instance: index, sentAt, ...nothingYet };
      observed.push(own);
      const one: OpenRequest = { observed: own, request, done: Promise.withResolvers() };
      if (child.exitCode !== null || child.signalCode !== null) {
        own.killedAt = own.sentAt;
        return Promise.resolve(own);
      }
      open.set(number, one);
      const of = { keyId, teamId: team?.id, userId: user?.id };
      tell(child, { kind: "ask", number, of, subjects, tokens });
      return one.done.promise;
    },
    kill,
    async replace(index) {
      fleet[index] = launch(index);
      await at(index).ready.promise;
    },
    stop: (index) => at(index).process.kill("SIGSTOP"),
    wake: (index) => at(index).process.kill("SIGCONT"),
    started: () => started,
    async [Symbol.asyncDispose]() {
      for (const index of fleet.keys()) await kill(index);
    },
  };
}

/** What ended so shortly before the kill may still be held in the database. */
const upkeepMs = 1000;

const nothingYet = {
  askedAt: Infinity,
  decidedAt: Infinity,
  refusedBy: undefined,
  at: 0,
  reports: [],
  used: {},
  backendEndedAt: Infinity,
  generated: null,
  endedAt: Infinity,
  mayWait: false,
  killedAt: Infinity,
} as const;

function tell(child: Subprocess, message: ToInstance): void {
  try {
    child.send(message);
  } catch {
    // It was killed a moment ago, which its exit tells.
  }
}
