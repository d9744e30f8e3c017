import type { BackendSign, Choice, Conversation } from "./backends.ts";
import type { LimitName, Subject, SubjectId } from "./keys.ts";
import { limitKinds, type Priority } from "./limits.ts";
import type { CountedFor, ReportedInput } from "./usage.ts";

/** Whose limits the tokens of a response count against. */
export interface SettledAdmission {
  subjects: readonly SubjectId[];
  /** The process that serves it. */
  instance: string;
}

/** How many tokens are reserved for the output of a request that does not limit it. */
export const defaultOutputTokens = 1024;

/** What a request of a key with limits of tokens may cost, before its response tells. */
export interface Reservation {
  /** The estimated input. */
  inputTokens: number;
  /** All that is reserved. */
  tokens: number;
  /** Reserved if no more than this is left; unset if the request says how much it may generate. */
  leastTokens?: number | undefined;
  /** The member of the body that says how much it may generate, if that is not `max_tokens`. */
  limitedBy?: string | undefined;
  /** How many texts it asks for, each of which may be as long. */
  texts: number;
  /** How many prompts it has: each choice reports the input of its own. */
  prompts: number;
}

/** Whether a request of subjects with limits may run. */
export interface Admission {
  /** Undefined if it may; `unavailable` if the database does not answer, and nothing else may decide. */
  refusedBy: LimitName | "unavailable" | undefined;
  /** Whose limit that is, by its place among the subjects. */
  at: number;
  /** Until a refused one may be admitted, in milliseconds. */
  waitMs: number;
  /**
   * What counts against a limit, this request included if it is admitted; undefined while the database fails.
   * @param at whose limit, by its place among the subjects; by default that of the first
   * @param isCharged only what is charged already, and not what running requests reserve
   */
  used(name: LimitName, at?: number, isCharged?: boolean): number | undefined;
  /** What the count of the response has to name; undefined if there is no limit of tokens. */
  handOver(): SettledAdmission | undefined;
  /** Gives back what the request holds: to be called when its tokens are counted. */
  end(): void;
  /** Gives back that too, and the request itself: the backend never gets it. Once is enough. */
  cancel(): void;
}

/**
 * Asks the limits of all subjects of a request, which hold together.
 * @param tokens reserved until the request ends
 * @param mayWait the request asks again if it is worth waiting: then a refusal does not count
 * @param leastTokens reserved instead if no more is left
 * @param early what the request was admitted with before its body was read: it is given back, and comes before others
 * @returns a promise if it has to wait for the database
 */
export type Admit = (
  subjects: readonly Subject[],
  tokens: number,
  mayWait?: boolean,
  leastTokens?: number,
  early?: Admission,
) => Admission | Promise<Admission>;

/** How soon a client may try again whose request waits for others of its key to end. */
export const othersEndMs = 1000;

/** A request that may be admitted this soon waits for it: clients that are told so come back later than that. */
export const shortWaitMs = 1500;

type Refusal = Pick<Admission, "refusedBy" | "waitMs">;

/** Whether a request was refused that runs as soon as one of its key ends. */
export const lacksPlace = ({ refusedBy }: Refusal): boolean =>
  isLimit(refusedBy) && limitKinds[refusedBy].counts === "places";

/** Whether a request that was refused waits and asks again. */
export const isWorthWaiting = (refusal: Refusal): boolean =>
  lacksPlace(refusal) || (isLimit(refusal.refusedBy) && refusal.waitMs <= shortWaitMs);

const isLimit = (refusedBy: Admission["refusedBy"]): refusedBy is LimitName =>
  refusedBy !== undefined && refusedBy !== "unavailable";

/** What the choice of a backend depends on. */
export interface Destination {
  /** Whose line it waits in; undefined if it names none. */
  model: string | undefined;
  /** The backends that may serve it, in the operator's order; none before its body is read. */
  candidates: readonly string[];
  /** The size of its body. */
  characters: number;
  conversation: Conversation;
  /** Whom it comes before where requests wait; unset: `normal`. */
  priority?: Priority | undefined;
}

/**
 * The request has a place, waits, or is refused because too many wait, or it does not. One that waits until another long
 * prompt is read says how much there is to read of its own.
 */
export type Entry = Choice | { prefillTokens: number } | "waiting" | "full";

export const isChoice = (entry: Entry): entry is Choice => typeof entry === "object" && "backend" in entry;

/**
 * The requests of this machine that wait for a place at a backend, and these places, which limit how many requests it gets
 * at once from all processes of the machine.
 */
export interface Places {
  /** @param listener called at most once, if the request has to wait */
  enter(request: ListedRequest, listener: PlaceListener): Place;
  /** Whether one of these backends is in, as far as this process knows. */
  isAnyIn(backends: readonly string[]): boolean;
  /** Registers what runs when a backend went out or came back. @returns ends that */
  onChanged(listener: () => void): () => void;
}

/** A request's place, or its wait for one. */
export interface Place {
  readonly entry: Entry | Promise<Entry>;
  /** Tells of the backend that the request was sent to. */
  report(sign: BackendSign): void;
  /**
   * To be called when the request has ended, moves on, or no longer waits.
   * @param input what the backend reports; undefined: it reports no usage
   */
  leave(input?: ReportedInput): void;
  /** Where the request stands in its model's line; undefined if it waits for no place. */
  rank(): Rank | undefined | Promise<Rank | undefined>;
}

/** The `position`th of `length` requests that wait. */
export interface Rank {
  position: number;
  length: number;
}

export interface ListedRequest extends CountedFor, Destination {
  /** Until it has a place; else it is refused if there is none. */
  waits: boolean;
  /** The candidates that it was at already, to no avail; one that waits may return to them. */
  tried: readonly string[];
}

/** What becomes of a request that waits. */
export interface PlaceListener {
  onGranted(choice: Choice): void;
  /** It has to make room for a request of another key. */
  onDisplaced(): void;
}
