import type { KeyId } from "./keys.ts";
import type { SettledAdmission } from "./admissions.ts";
import type { RequestRecord } from "./requests.ts";
import type { CountedFor, CountedUsage, Usage } from "./usage.ts";

/** Whose that is which a backend stores. */
export interface Owner {
  keyId: KeyId;
  /** The name of the backend that has it; null: there was one only. */
  backend: string | null;
  /** When it was last used, as far as that is noted, epoch milliseconds. */
  usedAt: number;
}

/** One counted response. */
export interface UsageEvent extends CountedFor, CountedUsage {
  /** Epoch milliseconds at which the response closed. Decides the Seoul day and minute that it counts for. */
  closedAt: number;
  /** 0 for usage that came after its response was counted; 1 if unset. */
  requestCount?: 0 | 1;
  /**
   * Set if the key reads a response that the backend stores and may report again: its tokens count up to the highest
   * numbers reported for this id. Usage that comes later is then given in full, not as a difference.
   */
  responseId?: string | undefined;
  /** Set if the key creates such a response: with all that it has reported so far, which reads do not count again. */
  created?: { id: string; reported: Usage } | undefined;
  /**
   * What the key has stored at a backend from now on, and uses now: ids as `proxy/stored.ts` names them, and the backend's
   * name; undefined if there is one only.
   */
  owned?: { ids: readonly string[]; backend: string | undefined } | undefined;
  /** The name sent to the backend; unset if the request named none. */
  model?: string | undefined;
  /** What the request log gets; unset for usage that came after its response was counted. */
  request?: RequestRecord | undefined;
  /** The request that this usage belongs to, if its response was counted before. */
  amends?: string | undefined;
  /** To be given back with the count; undefined for a key without limits. */
  admission?: SettledAdmission | undefined;
}
