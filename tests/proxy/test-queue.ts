import { noConversation } from "../../src/domain/backends.ts";
import type { Admission, Admit } from "../../src/domain/admissions.ts";
import type { KeyId, KeyLimits, LimitName, Subject } from "../../src/domain/keys.ts";
import type { Priority } from "../../src/domain/limits.ts";
import { endedByAdmin } from "../../src/proxy/upstream/abort-reason.ts";
import { Wait } from "../../src/proxy/waiting.ts";
import { noLimits } from "../../src/store/keys/rules.ts";
import type { MonotonicClock } from "../../src/time/clock.ts";
import { backendOf } from "../support/catalog.ts";
import { passTicks } from "../support/event-loop.ts";
import { startPlaces, startQueue } from "../support/local-places.ts";

interface TestQueueOptions {
  places?: number;
  maxWaiting: number;
  timeoutMs: number;
  monotonic: MonotonicClock;
  /** By default none. */
  hasOthers?: () => boolean;
}

const anywhere = { model: "m", candidates: ["backend"], characters: 0, conversation: noConversation };

export function startTestQueue(options: TestQueueOptions) {
  const { places, maxWaiting, timeoutMs, monotonic, hasOthers = () => false } = options;
  const stopping = new AbortController();
  let endKey: (keyId: KeyId, begunUntil: number) => void = () => {};
  const { admit, subjectsOf } = admitting();
  const queue = startQueue({
    places: startPlaces([backendOf("backend", { maxConcurrency: places })], { maxWaiting, monotonic }),
    hasPlaces: places !== undefined,
    admit,
    timeoutMs,
    lowTimeoutMs: timeoutMs,
    maxInLine: maxWaiting,
    monotonic,
    hasOthers,
    stopping: stopping.signal,
    onKeyEnded: (listener) => (endKey = listener),
  });
  async function send(keyId: KeyId, startedAt = 0, key?: KeyInDatabase, priority?: Priority) {
    const client = new AbortController();
    let state = "waiting";
    const asker = { keyId, subjects: subjectsOf(key, keyId), path: "/v1/x", startedAt, client: client.signal };
    const wait = new Wait({ ...asker, priority }, queue);
    (async () => wait.enter({ ...anywhere, priority }, undefined))().then(
      () => (state = "running"),
      (error: Error) => (state = error.message),
    );
    await passTicks();
    return {
      /** What became of it so far: `waiting`, `running`, or the code, the outcome or the limit of its refusal. */
      state: () => state,
      leave: () => client.abort(),
      end: () => wait.leave(),
      endByAdmin: () => wait.end(endedByAdmin()),
    };
  }
  return {
    send,
    depth: queue.depth,
    stop: () => stopping.abort(),
    endKey: (keyId: KeyId, begunUntil: number) => endKey(keyId, begunUntil),
  };
}

/** Asks a key for its limits by these, which are the same for no other. */
export function admitting(): {
  admit: Admit;
  subjectsOf: (key: KeyInDatabase | undefined, id: KeyId) => Subject[] | undefined;
} {
  const keys = new Map<KeyLimits, KeyInDatabase>();
  return {
    async admit([subject], _, mayWait = false) {
      const key = subject && keys.get(subject.limits);
      if (key === undefined) throw new Error("the key has no limits");
      return key.ask(mayWait);
    },
    subjectsOf(key, id) {
      if (key === undefined) return undefined;
      const limits = { ...noLimits, max_concurrency: key.maxConcurrency };
      keys.set(limits, key);
      return [{ id, limits }];
    },
  };
}

export type KeyInDatabase = ReturnType<typeof keyWith>;

/** A key as the database knows it. */
export function keyWith(maxConcurrency: number) {
  let [inFlight, cancelled] = [0, 0];
  let refusal: { refusedBy: LimitName; waitMs: number } | undefined;
  const asked: boolean[] = [];
  const unchanged = { at: 0, used: () => 0, handOver: () => undefined };
  const refused = (refusedBy: LimitName, waitMs: number): Admission => ({
    ...unchanged,
    refusedBy,
    waitMs,
    end() {},
    cancel() {},
  });
  return {
    maxConcurrency,
    async ask(mayWait: boolean): Promise<Admission> {
      asked.push(mayWait);
      if (refusal !== undefined) return refused(refusal.refusedBy, refusal.waitMs);
      if (inFlight >= maxConcurrency) return refused("max_concurrency", 1000);
      inFlight += 1;
      let isEnded = false;
      const end = (): void => {
        if (!isEnded) inFlight -= 1;
        isEnded = true;
      };
      const cancel = (): void => {
        cancelled += 1;
        end();
      };
      return { ...unchanged, refusedBy: undefined, waitMs: 0, end, cancel };
    },
    /** Whether each request that asked since the last call would ask again. */
    asked: () => asked.splice(0),
    inFlight: () => inFlight,
    /** One that another instance serves ends. */
    endElsewhere: () => void (inFlight -= 1),
    /** Another limit refuses all from now on. */
    refuseBy: (name: LimitName | undefined, waitMs = 0) => void (refusal = name && { refusedBy: name, waitMs }),
    /** How many were given back unsent. */
    cancelled: () => cancelled,
  };
}
