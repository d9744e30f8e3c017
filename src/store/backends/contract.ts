// The store's contract for what processes and instances tell each other: of backends, and of what is wrong. Times are epoch
// milliseconds.
//
// It keeps true: a backend drains until that is withdrawn. Which file of models a process uses is said again and again,
// so that one that was killed is listed for minutes only. It does not know which backends there are, nor their health:
// that is in memory, in `routing`.

import type { Change } from "../../domain/changes.ts";
import type { Engine } from "../engine/engine.ts";

/** A backend that gets no new requests. */
type DrainingBackend = Engine["tables"]["drainingBackends"]["$inferSelect"];

/** The file of models that a process uses. */
type CatalogInstance = Omit<Engine["tables"]["catalogInstances"]["$inferSelect"], "seenAt">;

export interface BackendStore {
  listDraining(): Promise<DrainingBackend[]>;
  /** Nothing changes for a backend that drains already. */
  drain(draining: DrainingBackend, by?: Change): Promise<void>;
  undrain(backend: string, by?: Change): Promise<void>;
  /** Says which file a process uses; lasts for some minutes. */
  usesFile(instance: CatalogInstance): Promise<void>;
  /** By name. */
  listFiles(): Promise<CatalogInstance[]>;
  forgetInstance(name: string): Promise<void>;
}

/** What a process sees, and until when it stood; null: it stands. */
export type StateRow = Omit<Engine["tables"]["states"]["$inferSelect"], "seenAt">;

type NoticeRow = Pick<Engine["tables"]["notices"]["$inferSelect"], "id" | "kind" | "body">;

export interface StateStore {
  /** What a process sees, each while it stands again and again; a silence of before stays. */
  save(rows: readonly StateRow[]): Promise<void>;
  /** What all processes see, and then what they saw in the last 30 days, the latest that began first. */
  list(): Promise<StateRow[]>;
  silence(states: readonly StateRow[], silence: { until: number; why: string }, by: Change): Promise<void>;
}

/** What is posted: made by one process, and each of its tries is one's. */
export interface NoticeStore {
  /** When one of each kind was made last. */
  latest(): Promise<{ kind: string; at: number }[]>;
  /**
   * Unless another process has made it. The states of its kind are then told: those that stand and began until a time, and
   * those that went.
   */
  add(notice: NoticeRow, began: number): Promise<void>;
  /** Takes the next try that is due. @param firstRetryMs until the second one; it doubles with each */
  take(firstRetryMs: number): Promise<(NoticeRow & { tries: number }) | undefined>;
  /** It was accepted, or is given up. */
  finish(id: string): Promise<void>;
}
