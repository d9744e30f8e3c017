import type { WallClock } from "../time/clock.ts";
import { within } from "../time/wait.ts";
import type { Facts } from "./state-rules.ts";
import {
  instanceOf,
  isKind,
  judge,
  type ListedState,
  mergeStates,
  notSilenced,
  type SeenState,
  type State,
} from "./states.ts";

/** Where processes tell each other what they see. */
export interface SharedStates<By> {
  save(states: readonly SeenState[]): Promise<void>;
  /** Those that stand, and those of the last days. */
  list(): Promise<SeenState[]>;
  silence(states: readonly SeenState[], silence: { until: number; why: string }, by: By): Promise<void>;
}

interface WatchOptions<By> {
  /** @param isAsked somebody waits for it: a backend is asked too. Never rejects */
  gather: (isAsked: boolean) => Promise<Facts>;
  store: SharedStates<By>;
  /** `host/pid` */
  process: string;
  clock: WallClock;
}

/** Whoever asks in between gets what was seen. */
const maxAgeMs = 1000;
const everyMs = 10_000;
/** The database is given so long. */
const storeMs = 2000;
/** While the database is away, so many that ended are kept for it. */
const maxEnded = 100;
/** What a process of before saw until then goes on. */
const restartMs = 10 * 60_000;

/**
 * Keeps the list of what this process sees, tells the others, and hears of theirs. A state that stood when a process of
 * this machine ended, and stands when the next one looks for the first time, has not begun anew.
 */
export class Watch<By = unknown> {
  #own: readonly State[] = [];
  #ended: SeenState[] = [];
  /** What the database had, and when that was read; undefined: never. */
  #shared: { rows: SeenState[]; at: number } | undefined;
  #facts: Facts | undefined;
  #looking: Promise<void> | undefined;
  #wasAsked = false;
  #isAwayTold = false;
  #timer: Timer | undefined;

  constructor(readonly options: WatchOptions<By>) {}

  start(): void {
    this.#timer = setInterval(() => void this.#look(false).then(() => this.#share(false)), everyMs).unref();
  }

  /** What stood goes on in the next process, so its rows stay. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#looking;
  }

  /** @returns whether requests can be counted, and what stands as far as this process knows */
  async ready(): Promise<{ isReady: boolean; states: ListedState[] }> {
    await this.#look(true);
    const { database, schema } = this.#facts ?? {};
    const isReady = database?.isWritable !== false && schema?.mayWrite !== false;
    return { isReady, states: this.#merged().states };
  }

  /** @returns what stands and stood; `unknownSince`: the database does not answer, and of others no later state is known */
  async list(): Promise<ReturnType<typeof mergeStates> & { unknownSince: number | undefined }> {
    await this.#look(true);
    const isShared = await this.#share(true);
    return { ...this.#merged(), unknownSince: isShared ? undefined : (this.#shared?.at ?? 0) };
  }

  /** A notice told that the database is away, without it. */
  awayTold(): void {
    this.#isAwayTold = true;
  }

  /** The states of this process, for its metrics. */
  own = (): SeenState[] => this.#own.map((state) => this.#seen(state));

  /** Silences those of a kind that stand now: one that comes again is told again. @returns how many there are */
  async silence(which: { kind: string; instance?: string }, silence: { until: number; why: string }, by: By) {
    await this.#look(true);
    await this.#save();
    const rows = (await this.options.store.list()).filter(
      ({ kind, process, until }) =>
        until === null &&
        isKind(kind) &&
        kind === which.kind &&
        (which.instance ?? instanceOf(kind, process)) === instanceOf(kind, process),
    );
    await this.options.store.silence(rows, silence, by);
    return rows.length;
  }

  #look(isAsked: boolean): Promise<void> {
    const age = Math.abs(this.options.clock() - (this.#facts?.now ?? -Infinity));
    if (age < maxAgeMs && (this.#wasAsked || !isAsked)) return this.#looking ?? Promise.resolve();
    return (this.#looking ??= this.#judge(isAsked).finally(() => (this.#looking = undefined)));
  }

  async #judge(isAsked: boolean): Promise<void> {
    const facts = await this.options.gather(isAsked);
    this.#wasAsked = isAsked;
    const { standing, gone } = judge(this.#own, facts);
    const ended = gone.map((state) => Object.assign(this.#seen(state), { until: facts.now }));
    this.#ended = [...this.#ended, ...ended].slice(-maxEnded);
    [this.#own, this.#facts] = [standing, facts];
    this.#isAwayTold &&= standing.some(({ kind }) => kind === "database_away");
  }

  /** @returns whether the database answered */
  async #share(isAsked: boolean): Promise<boolean> {
    if (!isAsked && this.#shared !== undefined && this.#own.length + this.#ended.length === 0) return true;
    try {
      if (this.#shared === undefined) this.#goOn(await this.#read());
      await within(storeMs, this.#save());
      await this.#read();
      return true;
    } catch {
      return false;
    }
  }

  async #read(): Promise<SeenState[]> {
    const rows = await within(storeMs, this.options.store.list());
    this.#shared = { rows, at: this.options.clock() };
    return rows;
  }

  async #save(): Promise<void> {
    const told = [...this.own(), ...this.#ended];
    if (told.length > 0) await this.options.store.save(told);
    this.#ended = this.#ended.filter((one) => !told.includes(one));
  }

  /** Takes over since when, and the silence, of what the process before saw. */
  #goOn(rows: SeenState[]): void {
    const { process, clock } = this.options;
    const before = (state: State) => (row: SeenState) =>
      row.kind === state.kind &&
      row.object === state.object &&
      instanceOf(state.kind, row.process)?.split("/")[0] === instanceOf(state.kind, process)?.split("/")[0] &&
      (row.until ?? Infinity) >= clock() - restartMs;
    this.#own = this.#own.map((state) => {
      const [first] = rows.filter(before(state)).toSorted((a, b) => a.since - b.since);
      if (first === undefined || first.since >= state.since) return state;
      rows.push({ ...first, process, until: null });
      return { ...state, since: first.since };
    });
  }

  #seen(state: State): SeenState {
    const { process } = this.options;
    const row = this.#shared?.rows.find(
      (one) =>
        one.process === process && one.kind === state.kind && one.object === state.object && one.since === state.since,
    );
    const { silencedUntil, silencedWhy, silencedBy } = row ?? notSilenced;
    const told = row?.told ?? Number(this.#isAwayTold && state.kind === "database_away");
    return { ...state, process, until: null, silencedUntil, silencedWhy, silencedBy, told };
  }

  #merged(): ReturnType<typeof mergeStates> {
    const { process, clock } = this.options;
    const others = this.#shared?.rows.filter((row) => row.process !== process || row.until !== null) ?? [];
    return mergeStates([...others, ...this.own(), ...this.#ended], clock());
  }
}
