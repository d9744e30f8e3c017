import {
  createEffect,
  createSignal,
  createUniqueId,
  For,
  type JSX,
  Match,
  onCleanup,
  onMount,
  Show,
  Switch,
} from "solid-js";
import { parseSeoulMinute, seoulMinute } from "../lib/seoul-time.ts";
import { serverNow } from "../lib/server-clock.ts";
import { zoneName } from "../lib/time-zone.ts";
import { useHasTeams, useHasUsers, useKeyNamesQuery, useTeamsQuery } from "../queries.ts";
import { IconButton, Select } from "../ui/controls.tsx";
import { Menu } from "../ui/menu.tsx";
import { useModelNamesQuery } from "./queries.ts";
import { outcomeLabel } from "./request-format.ts";
import { outcomes } from "../../../src/domain/requests.ts";
import { fromInputTime, toInputTime } from "./request-time.ts";
import { filterNames, type RequestFilterName, requestFilters } from "./request-filters.ts";
import { groupings } from "./request-groups.ts";
import type { RequestFilters } from "./use-request-filters.ts";

interface Option {
  value: string;
  label: string;
}

const results: readonly Option[] = [
  { value: "", label: "All" },
  { value: "failed", label: "All that failed" },
  { value: "2xx", label: "2xx" },
  { value: "without_usage", label: "2xx without usage" },
  { value: "4xx", label: "4xx" },
  { value: "5xx", label: "5xx" },
  ...outcomes.map((outcome) => ({ value: outcome, label: outcomeLabel(outcome) })),
];

/** Those that most people want stand there; a menu adds the others. */
const always: ReadonlySet<RequestFilterName> = new Set(["key", "result"]);

/** A chip for each filter, which applies while it is changed. */
export function RequestFilterBar(props: { filters: RequestFilters }): JSX.Element {
  const hasTeams = useHasTeams();
  const hasUsers = useHasUsers();
  const [added, setAdded] = createSignal<readonly RequestFilterName[]>([]);
  const isShown = (name: RequestFilterName): boolean =>
    always.has(name) || added().includes(name) || props.filters.value(name) !== "";
  const isOffered = (name: RequestFilterName): boolean =>
    !isShown(name) && (name !== "team" || hasTeams()) && (name !== "user" || hasUsers());
  const add = (name: RequestFilterName): void => void setAdded((before) => [...before, name]);
  const remove = (name: RequestFilterName): void => {
    setAdded((before) => before.filter((other) => other !== name));
    props.filters.set(name, "");
  };
  return (
    <div class="filters">
      <For each={filterNames.filter(isShown)}>
        {(name) => (
          <div class="filter-chip">
            <label>
              <span>
                {requestFilters[name]}
                {name === "since" || name === "until" ? ` (${zoneName(serverNow())})` : ""}
              </span>
              <FilterInput
                name={name}
                filters={props.filters}
                isNew={added().includes(name)}
                onEmpty={() => add(name)}
              />
            </label>
            <Show when={!always.has(name) || props.filters.value(name) !== ""}>
              <IconButton icon="close" label={`Remove ${requestFilters[name]}`} onClick={() => remove(name)} />
            </Show>
          </div>
        )}
      </For>
      <Menu
        label="Add a filter"
        icon="plus"
        text="Filter"
        items={filterNames
          .filter(isOffered)
          .map((name) => ({ label: requestFilters[name], onSelect: () => add(name) }))}
      />
      <GroupSelect filters={props.filters} />
    </div>
  );
}

function GroupSelect(props: { filters: RequestFilters }): JSX.Element {
  const id = createUniqueId();
  const hasTeams = useHasTeams();
  const hasUsers = useHasUsers();
  const chosen = (): string => props.filters.grouping() ?? "";
  const isOffered = (by: string): boolean =>
    by === chosen() || ((by !== "team" || hasTeams()) && (by !== "user" || hasUsers()));
  const offered = (): Option[] =>
    Object.entries(groupings).flatMap(([value, { label }]) => (isOffered(value) ? [{ value, label }] : []));
  // Not within the label, which would be called after the options too: they have the names of other filters.
  return (
    <div class="filter-field">
      <label for={id}>Group by</label>
      <Select
        id={id}
        options={[{ value: "", label: "Nothing" }, ...offered()]}
        value={chosen()}
        onChange={(by) => props.filters.setGrouping(by)}
      />
    </div>
  );
}

interface FilterInputProps {
  name: RequestFilterName;
  filters: RequestFilters;
  /** Was just added: it takes the focus. */
  isNew: boolean;
  /** Called before the text is emptied: the chip stays. */
  onEmpty: () => void;
}

function FilterInput(props: FilterInputProps): JSX.Element {
  return (
    <Switch fallback={<TextInput {...props} />}>
      <Match when={props.name === "result"}>
        <ChoiceInput {...props} options={results} />
      </Match>
      <Match when={props.name === "key"}>
        <KeyInput {...props} />
      </Match>
      <Match when={props.name === "team"}>
        <TeamInput {...props} />
      </Match>
      <Match when={props.name === "model"}>
        <ModelInput {...props} />
      </Match>
    </Switch>
  );
}

const optionsOf = (named: readonly { id: number; name: string }[] | undefined): Option[] => [
  { value: "", label: "All" },
  ...(named ?? []).map(({ id, name }) => ({ value: String(id), label: name })),
];

function KeyInput(props: FilterInputProps): JSX.Element {
  const keys = useKeyNamesQuery();
  return <ChoiceInput {...props} options={optionsOf(keys.data)} />;
}

function TeamInput(props: FilterInputProps): JSX.Element {
  const teams = useTeamsQuery();
  return <ChoiceInput {...props} options={[...optionsOf(teams.data), { value: "0", label: "No team" }]} />;
}

function ChoiceInput(props: FilterInputProps & { options: readonly Option[] }): JSX.Element {
  const chosen = (): string => props.filters.value(props.name);
  const offered = (): readonly Option[] =>
    props.options.some(({ value }) => value === chosen())
      ? props.options
      : [...props.options, { value: chosen(), label: chosen() }];
  return (
    <Select
      ref={(select) => onMount(() => props.isNew && select.focus())}
      options={offered()}
      value={chosen()}
      onChange={(value) => props.filters.set(props.name, value)}
    />
  );
}

/** Suggests the models of the last days. */
function ModelInput(props: FilterInputProps): JSX.Element {
  const names = useModelNamesQuery();
  return (
    <>
      <TextInput {...props} list="known-models" />
      <datalist id="known-models">
        <For each={names.data}>{(name) => <option value={name} />}</For>
      </datalist>
    </>
  );
}

const placeholders: { readonly [Name in RequestFilterName]?: string } = {
  path: "/v1/chat/completions",
  client: "claude-cli",
  class: "subagent",
};

interface Form {
  type: "number" | "datetime-local";
  show: (value: string) => string;
  read: (text: string) => string;
}

const time: Form = {
  type: "datetime-local",
  show: (minute) => {
    const at = parseSeoulMinute(minute);
    return at === undefined ? "" : toInputTime(at);
  },
  read: (text) => {
    const at = fromInputTime(text);
    return at === undefined ? "" : seoulMinute(at);
  },
};

/** How fields show what the URL has in another form. */
const forms: { readonly [Name in RequestFilterName]?: Form } = {
  slower: {
    type: "number",
    show: (ms) => (Number(ms) > 0 ? String(Number(ms) / 1000) : ""),
    read: (seconds) => (Number(seconds) > 0 ? String(Math.ceil(Number(seconds) * 1000)) : ""),
  },
  since: time,
  until: time,
};

/** So long after the last letter a text applies. What is pasted applies at once. */
const typingMs = 300;

function TextInput(props: FilterInputProps & { list?: string }): JSX.Element {
  const form = () => forms[props.name];
  let input: HTMLInputElement | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  onCleanup(() => clearTimeout(timer));
  onMount(() => props.isNew && input?.focus());
  // Not while it has the focus: the URL is behind what is typed.
  createEffect(() => {
    const value = props.filters.value(props.name);
    if (input !== undefined && document.activeElement !== input) input.value = form()?.show(value) ?? value;
  });
  const apply = (text: string): void => {
    const value = form()?.read(text) ?? text;
    clearTimeout(timer);
    if (value === "") props.onEmpty();
    props.filters.set(props.name, value);
  };
  const applySoon = (event: InputEvent & { currentTarget: HTMLInputElement }): void => {
    const text = event.currentTarget.value;
    clearTimeout(timer);
    if (event.inputType === "insertFromPaste") apply(text);
    else timer = setTimeout(apply, typingMs, text);
  };
  return (
    <input
      ref={input}
      type={form()?.type ?? "text"}
      min="0"
      step="any"
      placeholder={placeholders[props.name] ?? "Any"}
      list={props.list}
      maxlength="512"
      autocomplete="off"
      autocapitalize="none"
      spellcheck={false}
      onInput={applySoon}
      onChange={({ currentTarget }) => apply(currentTarget.value)}
    />
  );
}
