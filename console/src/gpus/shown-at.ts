import { type Accessor, createContext, useContext } from "solid-js";
import { now, toServerTime } from "../lib/server-clock.ts";

/** What time the shown samples tell about. */
export interface ShownAt {
  /** Now; while the server does not answer, the time of its last answer. */
  at: Accessor<number>;
  isOld: Accessor<boolean>;
}

const ShownAtContext = createContext<ShownAt>({ at: now, isOld: () => false });
export const ShownAtProvider = ShownAtContext.Provider;
export const useShownAt = (): ShownAt => useContext(ShownAtContext);

/** @param query that of the GPUs; reactive */
export const shownAtOf = (query: { isError: boolean; data: unknown; dataUpdatedAt: number }): ShownAt => {
  const isOld = (): boolean => query.isError && query.data !== undefined;
  return { isOld, at: () => (isOld() ? toServerTime(query.dataUpdatedAt) : now()) };
};
