// The store's contract for what processes and instances tell each other of backends. Times are epoch milliseconds.
//
// It keeps true: a backend drains until that is withdrawn. Which file of models a process uses is said again and again,
// so that one that was killed is listed for minutes only. It does not know which backends there are, nor their health:
// that is in memory, in `routing`.

import type { Change } from "../../domain/changes.ts";

/** A backend that gets no new requests. */
export interface DrainingBackend {
  backend: string;
  since: number;
  /** Who said so. */
  username: string;
}

/** The file of models that a process uses. */
export interface CatalogInstance {
  name: string;
  fileHash: string;
}

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
