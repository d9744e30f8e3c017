import type { KeyId } from "./keys.ts";
import type { SettledAdmission } from "./admissions.ts";
import type { RequestRecord } from "./requests.ts";
import type { CountedUsage, Usage } from "./usage.ts";

/** How the backend names a response that it stores. */
export interface StoredResponse {
  id: string;
  /** When the backend made it, in its own seconds; undefined if it does not say. */
  madeAt: number | undefined;
}

/** The folders, below `/v1`, of what backends store beside responses: created there, and named by the next part of a path. */
export const storedFolders = [
  "files",
  "batches",
  "messages/batches",
  "conversations",
  "vector_stores",
  "containers",
  "uploads",
  "fine_tuning/jobs",
  "evals",
  "assistants",
  "threads",
  "videos",
] as const;

export type StoredFolder = (typeof storedFolders)[number];

/** What is stored is known here under its folder and its id, so that none is taken for a response, whose id stands alone. */
export const storedId = (folder: StoredFolder | "responses", id: string): string =>
  folder === "responses" ? id : `${folder}/${id}`;

/** A key that created a response under an id. */
export interface Creator {
  keyId: KeyId;
  /** When the latest one was made, as the backend said. Null: it did not say. */
  madeAt: number | null;
  /** Where the latest one is; null or unset: there was one backend only. */
  backend?: string | null;
}

/** A create, as far as the counts of later reads depend on it. */
export interface ReportedCreate extends StoredResponse {
  /** Not set if an event before this one told of it. */
  isNew: boolean;
  /** All that it has reported so far. */
  reported: Usage;
  /** The name of the backend that made it; undefined if there is one only. */
  backend?: string | undefined;
}

/** One counted response. */
export interface UsageEvent extends CountedUsage {
  keyId: KeyId;
  /** Epoch milliseconds at which the response closed. Decides the Seoul day and minute that it counts for. */
  closedAt: number;
  /** 0 for usage that came after its response was counted; 1 if unset. */
  requestCount?: 0 | 1;
  /**
   * Set if the key reads a response that the backend stores and may report again: its tokens count up to the highest
   * numbers reported for this id. Usage that comes later is then given in full, not as a difference.
   */
  responseId?: string | undefined;
  /** Set if the key creates such a response: its tokens always count. */
  created?: ReportedCreate | undefined;
  /** The name sent to the backend; unset if the request named none. */
  model?: string | undefined;
  /** What the request log gets; unset for usage that came after its response was counted. */
  request?: RequestRecord | undefined;
  /** The request that this usage belongs to, if its response was counted before. */
  amends?: string | undefined;
  /** To be given back with the count; undefined for a key without limits. */
  admission?: SettledAdmission | undefined;
}
