import type { KeyId, LimitName } from "./keys.ts";

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
}

/** The places at the backend, which limit how many requests it gets at once from all processes of this machine. */
export interface Places {
  /** @param listener called at most once, if the request has to wait */
  enter(ticket: number, keyId: KeyId, listener: PlaceListener): Promise<"granted" | "waiting" | "full">;
  leave(ticket: number): void;
}

/** What becomes of a request that waits. */
export interface PlaceListener {
  onGranted(): void;
  /** It has to make room for a request of another key. */
  onDisplaced(): void;
}
