import type { KeyId, LimitName } from "./keys.ts";
import { limitKinds } from "./limits.ts";

/** The place and the reserved tokens of one request in flight. Unique by all three members. */
export interface AdmissionId {
  keyId: KeyId;
  /** The process that serves it. */
  instance: string;
  number: number;
}

/**
 * What ends with the count of a response: what its request holds in the database. The requests of a busy key hold it
 * together, and give it back later; their tokens count against the limits with the response all the same.
 */
export type SettledAdmission = AdmissionId | Pick<AdmissionId, "keyId">;

/** What a request of a key with limits of tokens may cost, before its response tells. */
export interface Reservation {
  /** The estimated input. */
  inputTokens: number;
  /** All that is reserved. */
  tokens: number;
  /** How many prompts it has: each choice reports the input of its own. */
  prompts: number;
}

/** Whether a request of a key with limits may run. */
export interface Admission {
  /** Undefined if it may. */
  refusedBy: LimitName | undefined;
  /** Until a refused one may be admitted, in milliseconds. */
  waitMs: number;
  /** What counts against a limit, this request included if it is admitted; undefined while the database fails. */
  used(name: LimitName): number | undefined;
  /** From now on the count of the response gives back what the request holds. @returns what that is */
  handOver(): SettledAdmission | undefined;
  /** Gives back what the request holds, unless that was handed over to a count. */
  end(): void;
  /** Gives back that too, and the request itself: the backend never gets it. */
  cancel(): void;
}

/** A request that may be admitted this soon waits for it: clients that are told so come back later than that. */
export const shortWaitMs = 1500;

type Refusal = Pick<Admission, "refusedBy" | "waitMs">;

/** Whether a request was refused that runs as soon as one of its key ends. */
export const lacksPlace = ({ refusedBy }: Refusal): boolean =>
  refusedBy !== undefined && limitKinds[refusedBy].counts === "places";

/** Whether a request that was refused waits and asks again. */
export const isWorthWaiting = (refusal: Refusal): boolean =>
  lacksPlace(refusal) || (refusal.refusedBy !== undefined && refusal.waitMs <= shortWaitMs);

/** Until the limits of its key admit the request, or until it has a place at the backend. */
export type WaitsFor = "limits" | "place";

/**
 * The requests that wait on this machine, and the places at the backend, which limit how many requests it gets at once from
 * all processes of the machine.
 */
export interface Places {
  /**
   * A request that waits for the limits of its key enters again when they admit it.
   * @param listener called at most once, if the request has to wait
   */
  enter(ticket: number, request: ListedRequest, listener: PlaceListener): Promise<"granted" | "waiting" | "full">;
  leave(ticket: number): void;
}

export interface ListedRequest {
  keyId: KeyId;
  waitsFor: WaitsFor;
}

/** What becomes of a request that waits. */
export interface PlaceListener {
  onGranted(): void;
  /** It has to make room for a request of another key. */
  onDisplaced(): void;
}
