import { createMemo, createSignal } from "solid-js";
import type { Key } from "../queries.ts";

/** The keys of a list that the user selected. A key that leaves the list is no longer selected, or a filter would hide it. */
export interface SelectedKeys {
  list: () => readonly Key[];
  has: (key: Key) => boolean;
  set: (key: Key, isSelected: boolean) => void;
  replace: (keys: readonly Key[]) => void;
}

/** @param listed the keys that the filter shows */
export function useSelectedKeys(listed: () => readonly Key[]): SelectedKeys {
  const [ids, setIds] = createSignal<ReadonlySet<number>>(new Set());
  const list = createMemo(() => (ids().size === 0 ? [] : listed().filter(({ id }) => ids().has(id))));
  return {
    list,
    has: ({ id }) => ids().has(id),
    set: ({ id }, isSelected) => {
      const shown = new Set(list().map((key) => key.id));
      if (isSelected) shown.add(id);
      else shown.delete(id);
      setIds(shown);
    },
    replace: (keys) => void setIds(new Set(keys.map(({ id }) => id))),
  };
}
