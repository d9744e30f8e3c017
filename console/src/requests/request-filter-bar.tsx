import { createSignal, For, type JSX, Show } from "solid-js";
import { parseSeoulMinute, seoulMinute } from "../lib/seoul-time.ts";
import { serverNow } from "../lib/server-clock.ts";
import { zoneName } from "../lib/time-zone.ts";
import { useHasUsers, useKeyNamesQuery, useTeamsQuery } from "../queries.ts";
import { GroupSelect } from "./group-select.tsx";
import { useModelNamesQuery } from "./queries.ts";
import { outcomeLabel } from "./request-format.ts";
import { outcomes } from "../../../src/domain/requests.ts";
import { fromInputTime, toInputTime } from "./request-time.ts";
import type { RequestFilterName } from "./request-filters.ts";
import type { RequestFilters } from "./use-request-filters.ts";

const results = [
  { value: "", label: "All results" },
  { value: "failed", label: "All that failed" },
  { value: "2xx", label: "2xx" },
  { value: "without_usage", label: "2xx without usage" },
  { value: "4xx", label: "4xx" },
  { value: "5xx", label: "5xx" },
  ...outcomes.map((outcome) => ({ value: outcome, label: outcomeLabel(outcome) })),
];

/** The filters match whole values, so a field applies on Enter or when it is left. */
export function RequestFilterBar(props: { filters: RequestFilters }): JSX.Element {
  const hasUsers = useHasUsers();
  const hasMore = (): boolean =>
    (
      [
        "user",
        "backend",
        "path",
        "client",
        "class",
        "address",
        "conversation",
        "id",
        "slower",
        "since",
        "until",
      ] as const
    ).some((name) => props.filters.value(name) !== "");
  return (
    <div class="filters">
      <div class="filter-fields">
        <KeySelect filters={props.filters} />
        <TeamSelect filters={props.filters} />
        <ResultSelect filters={props.filters} />
        <ModelField filters={props.filters} />
        <GroupSelect value={props.filters.grouping()} none="Nothing" onChange={(by) => props.filters.setGrouping(by)} />
      </div>
      <details open={hasMore()}>
        <summary>More filters</summary>
        <div class="filter-fields">
          <Show when={hasUsers() || props.filters.value("user") !== ""}>
            <FilterText filters={props.filters} name="user" label="User’s id" />
          </Show>
          <FilterText filters={props.filters} name="backend" label="Backend" />
          <FilterText filters={props.filters} name="path" label="Path" placeholder="/v1/chat/completions" />
          <FilterText filters={props.filters} name="client" label="Client program" placeholder="claude-cli" />
          <FilterText filters={props.filters} name="class" label="Class" placeholder="subagent" />
          <FilterText filters={props.filters} name="address" label="Client address" />
          <FilterText filters={props.filters} name="conversation" label="Conversation" />
          <FilterText filters={props.filters} name="id" label="Request id" />
          <SlowerField filters={props.filters} />
          <TimeField filters={props.filters} name="since" label="Ended from" />
          <TimeField filters={props.filters} name="until" label="Ended before" />
        </div>
      </details>
    </div>
  );
}

function KeySelect(props: { filters: RequestFilters }): JSX.Element {
  const keys = useKeyNamesQuery();
  const chosen = (): string => props.filters.value("key");
  const isKnown = (): boolean => chosen() === "" || (keys.data?.some(({ id }) => String(id) === chosen()) ?? false);
  return (
    <label class="filter-field">
      <span>API key</span>
      <select onChange={({ currentTarget }) => props.filters.set("key", currentTarget.value)}>
        <option value="" selected={chosen() === ""}>
          All keys
        </option>
        <Show when={!isKnown()}>
          <option value={chosen()} selected>
            Key {chosen()}
          </option>
        </Show>
        <For each={keys.data}>
          {(key) => (
            <option value={key.id} selected={String(key.id) === chosen()}>
              {key.name}
            </option>
          )}
        </For>
      </select>
    </label>
  );
}

/** Nothing while nobody uses teams. */
function TeamSelect(props: { filters: RequestFilters }): JSX.Element {
  const teams = useTeamsQuery();
  const chosen = (): string => props.filters.value("team");
  const options = (): { value: string; label: string }[] => {
    const known = (teams.data ?? []).map(({ id, name }) => ({ value: String(id), label: name }));
    const all = [{ value: "", label: "All teams" }, ...known, { value: "0", label: "No team" }];
    const isKnown = all.some(({ value }) => value === chosen());
    return isKnown ? all : [...all, { value: chosen(), label: `Team ${chosen()}` }];
  };
  return (
    <Show when={(teams.data?.length ?? 0) > 0 || chosen() !== ""}>
      <label class="filter-field">
        <span>Team</span>
        <select onChange={({ currentTarget }) => props.filters.set("team", currentTarget.value)}>
          <For each={options()}>
            {({ value, label }) => (
              <option value={value} selected={value === chosen()}>
                {label}
              </option>
            )}
          </For>
        </select>
      </label>
    </Show>
  );
}

function ResultSelect(props: { filters: RequestFilters }): JSX.Element {
  const chosen = (): string => props.filters.value("result");
  return (
    <label class="filter-field">
      <span>Result</span>
      <select onChange={({ currentTarget }) => props.filters.set("result", currentTarget.value)}>
        <Show when={!results.some(({ value }) => value === chosen())}>
          <option value={chosen()} selected>
            {chosen()}
          </option>
        </Show>
        <For each={results}>
          {({ value, label }) => (
            <option value={value} selected={value === chosen()}>
              {label}
            </option>
          )}
        </For>
      </select>
    </label>
  );
}

/** Suggests the models of the last days once the field is used. */
function ModelField(props: { filters: RequestFilters }): JSX.Element {
  const [isUsed, setIsUsed] = createSignal(false);
  const names = useModelNamesQuery(isUsed);
  return (
    <div onFocusIn={() => setIsUsed(true)}>
      <FilterText filters={props.filters} name="model" label="Model" isFirst list="known-models" />
      <datalist id="known-models">
        <For each={names.data}>{(name) => <option value={name} />}</For>
      </datalist>
    </div>
  );
}

function FilterText(props: {
  filters: RequestFilters;
  name: RequestFilterName;
  label: string;
  placeholder?: string;
  isFirst?: boolean;
  list?: string;
}): JSX.Element {
  return (
    <label class="filter-field">
      <span>{props.label}</span>
      <input
        type="text"
        value={props.filters.value(props.name)}
        placeholder={props.placeholder ?? "Any"}
        list={props.list}
        maxlength="512"
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
        data-shortcut={props.isFirst === true ? "filter" : undefined}
        onChange={({ currentTarget }) => props.filters.set(props.name, currentTarget.value)}
      />
    </label>
  );
}

const SlowerField = (props: { filters: RequestFilters }): JSX.Element => (
  <label class="filter-field">
    <span>Longer than (seconds)</span>
    <input
      type="number"
      min="0"
      step="any"
      placeholder="Any"
      value={props.filters.value("slower") === "" ? "" : Number(props.filters.value("slower")) / 1000}
      onChange={({ currentTarget: { value } }) =>
        props.filters.set("slower", Number(value) > 0 ? String(Math.ceil(Number(value) * 1000)) : "")
      }
    />
  </label>
);

function TimeField(props: { filters: RequestFilters; name: "since" | "until"; label: string }): JSX.Element {
  const shown = (): string => {
    const at = parseSeoulMinute(props.filters.value(props.name));
    return at === undefined ? "" : toInputTime(at);
  };
  const choose = (text: string): void => {
    const at = fromInputTime(text);
    props.filters.set(props.name, at === undefined ? "" : seoulMinute(at));
  };
  return (
    <label class="filter-field">
      <span>
        {props.label} ({zoneName(serverNow())})
      </span>
      <input type="datetime-local" value={shown()} onChange={({ currentTarget }) => choose(currentTarget.value)} />
    </label>
  );
}
