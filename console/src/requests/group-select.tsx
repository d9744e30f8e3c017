import { createUniqueId, For, type JSX, Show } from "solid-js";
import { useHasTeams, useHasUsers } from "../queries.ts";
import type { Grouping } from "./queries.ts";
import { groupings } from "./request-groups.ts";

/** @param props.none what it says if requests are not grouped; undefined: they always are */
export function GroupSelect(props: {
  value: Grouping | undefined;
  none?: string;
  onChange: (by: string) => void;
}): JSX.Element {
  const id = createUniqueId();
  const hasTeams = useHasTeams();
  const hasUsers = useHasUsers();
  const isOffered = (by: string): boolean =>
    by === props.value || ((by !== "team" || hasTeams()) && (by !== "user" || hasUsers()));
  const offered = () => Object.entries(groupings).filter(([by]) => isOffered(by));
  // Not within the label, which would be called after the options too: they have the names of other filters.
  return (
    <div class="filter-field">
      <label for={id}>Group by</label>
      <select id={id} onChange={({ currentTarget }) => props.onChange(currentTarget.value)}>
        <Show when={props.none}>{(none) => <option value="">{none()}</option>}</Show>
        <For each={offered()}>
          {([by, { label }]) => (
            <option value={by} selected={by === props.value}>
              {label}
            </option>
          )}
        </For>
      </select>
    </div>
  );
}
