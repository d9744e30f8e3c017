import { noConversation } from "../../../src/domain/backends.ts";
import type { Admission } from "../../../src/domain/admissions.ts";
import type { KeyId, LimitName } from "../../../src/domain/keys.ts";
import { createRequestQueue } from "../../../src/proxy/request/queue.ts";
import type { EndWait } from "../../../src/proxy/request/waiting-list.ts";
import { endedByAdmin } from "../../../src/proxy/upstream/abort-reason.ts";
import type { MonotonicClock } from "../../../src/time/clock.ts";
import { backendOf } from "../../support/catalog.ts";
import { passTicks } from "../../support/event-loop.ts";
import { startPlaces } from "../../support/local-places.ts";

interface Sent {
  /** What became of it so far: `waiting`, `running`, or the code, the outcome or the limit of its refusal. */
  state: () => string;
  /** How long its client is told to wait. */
  waitMs: () => number | undefined;
  /** The client leaves. */
  leave: () => void;
  /** The response ends. */
  end: () => void;
  /** An administrator ends it. */
  endByAdmin: () => void;
}

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
  const queue = createRequestQueue({
    places: startPlaces([backendOf("backend", { maxConcurrency: places })], { maxWaiting, monotonic }),
    hasPlaces: places !== undefined,
    timeoutMs,
    backendWaitMs: 0,
    monotonic,
    hasOthers,
    stopping: stopping.signal,
    onKeyEnded: (listener) => (endKey = listener),
  });
  async function send(keyId: KeyId, startedAt = 0, limits?: KeyInDatabase): Promise<Sent> {
    const client = new AbortController();
    let state = "waiting";
    let waitMs: number | undefined;
    let giveBack = (): void => {};
    let endWait: EndWait = () => {};
    queue
      .enter({ ...anywhere, keyId, startedAt, client: client.signal, limits }, ({ end }) => (endWait = end))
      .then(
        ({ admission, leave }) => {
          [state, waitMs, giveBack] = [admission?.refusedBy ?? "running", admission?.waitMs, leave];
        },
        (error: Error) => (state = error.message),
      );
    await passTicks();
    return {
      state: () => state,
      waitMs: () => waitMs,
      leave: () => client.abort(),
      end: () => giveBack(),
      endByAdmin: () => endWait(endedByAdmin()),
    };
  }
  return {
    send,
    depth: queue.depth,
    stop: () => stopping.abort(),
    endKey: (keyId: KeyId, begunUntil: number) => endKey(keyId, begunUntil),
  };
}

/** A key as the database knows it. */
export interface KeyInDatabase {
  maxConcurrency: number | null;
  early: undefined;
  ask(mayWait: boolean): Promise<Admission>;
  /** Whether each request that asked since the last call would ask again. */
  asked(): boolean[];
  inFlight(): number;
  /** One that another instance serves ends. */
  endElsewhere(): void;
  /** Another limit refuses all from now on. */
  refuseBy(name: LimitName | undefined, waitMs?: number): void;
  /** How many were given back unsent. */
  cancelled(): number;
}

export function keyWith(maxConcurrency: number): KeyInDatabase {
  let [inFlight, cancelled] = [0, 0];
  let refusal: { refusedBy: LimitName; waitMs: number } | undefined;
  const asked: boolean[] = [];
  const unchanged = { used: () => 0, handOver: () => undefined };
  const refused = (refusedBy: LimitName, waitMs: number): Admission => ({
    ...unchanged,
    refusedBy,
    waitMs,
    end() {},
    cancel() {},
  });
  return {
    maxConcurrency,
    early: undefined,
    async ask(mayWait) {
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
    asked: () => asked.splice(0),
    inFlight: () => inFlight,
    endElsewhere: () => void (inFlight -= 1),
    refuseBy: (name, waitMs = 0) => void (refusal = name && { refusedBy: name, waitMs }),
    cancelled: () => cancelled,
  };
}
