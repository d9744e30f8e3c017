import { createMemo, createSignal, For, type JSX, Show, untrack } from "solid-js";
import { now } from "../lib/server-clock.ts";
import { fieldTime, parseFieldTime, zoneName } from "../lib/time-zone.ts";
import { type Key, useTeamsQuery } from "../queries.ts";
import { useServedModelsQuery } from "../start/queries.ts";
import { Button, InputField, LabelledSelect } from "../ui/controls.tsx";
import { listOf } from "./key-limits.ts";
import type { KeyFields } from "./key-mutations.ts";
import { LimitFields, NoteFields, NotifyField } from "./limit-fields.tsx";
import { OpenWebUiLines, TeamField } from "./subject-dialog.tsx";

/** What a form begins with. */
export type EditedKey = Partial<Key>;

interface KeyFieldsProps {
  /** Undefined for a new key. */
  key?: EditedKey | undefined;
  /** Called with what the user changed; null clears a field. */
  onChange: (changed: KeyFields) => void;
}

/** The fields of a form for what a key may take, and what it is for. */
export function KeyFieldInputs(props: KeyFieldsProps): JSX.Element {
  const teams = useTeamsQuery();
  const isNew = untrack(() => props.key?.id === undefined);
  // They do not move when the first team was made, or users are chosen.
  const hadTeams = createMemo<boolean | undefined>((before) => before ?? (teams.data && teams.data.length > 0));
  const hadUsers = untrack(() => (props.key?.users_from ?? null) !== null);
  const [usersFrom, setUsersFrom] = createSignal(untrack(() => props.key?.users_from ?? null));
  const [secret, setSecret] = createSignal<string>();
  const chooseUsers = (from: string | null): void => {
    setUsersFrom(from);
    setSecret(from === "open-webui" ? randomSecret() : undefined);
    props.onChange({ users_from: from, users_secret: secret() ?? null });
  };
  const Team = (): JSX.Element => (
    <TeamField value={props.key?.team_id ?? null} onChange={(id) => props.onChange({ team_id: id })} />
  );
  const Users = (): JSX.Element => <UsersField value={usersFrom()} onChange={chooseUsers} />;
  return (
    <>
      <LimitFields
        of={props.key}
        onChange={props.onChange}
        onExtra={isNew ? undefined : (extra) => props.onChange({ limits_extra: extra })}
        more={
          <>
            <Show when={hadTeams() === false}>
              <Team />
            </Show>
            <Show when={!hadUsers}>
              <Users />
            </Show>
            <NotifyField of={props.key} onChange={props.onChange} />
          </>
        }
      >
        <Show when={hadTeams()}>
          <Team />
        </Show>
        <ScopeField {...props} />
        <Show when={hadUsers}>
          <Users />
        </Show>
      </LimitFields>
      <Show when={secret()}>{(made) => <OpenWebUiLines secret={made()} />}</Show>
      <Show when={usersFrom() !== null}>
        <UserLimits {...props} />
      </Show>
      <ModelsField {...props} />
      <PathsField value={props.key?.allowed_paths ?? null} onChange={props.onChange} />
      <ExpiryField {...props} />
      <InputField
        label="Owner"
        hint="The person or team that is responsible for the key."
        maxlength="240"
        value={props.key?.owner ?? ""}
        onText={(text) => props.onChange({ owner: text.trim() || null })}
      />
      <NoteFields of={props.key} noteHint="Up to 1,000 characters. The filter finds it." onChange={props.onChange} />
    </>
  );
}

/** What a key may be used for. */
export const scopes = [
  { value: "all", label: "Everything" },
  { value: "inference", label: "Inference only" },
  { value: "gpu", label: "GPU samples only" },
] as const;

const ScopeField = (props: KeyFieldsProps): JSX.Element => (
  <LabelledSelect
    label="May be used for"
    class="field"
    options={scopes}
    value={props.key?.scope ?? "all"}
    onChange={(scope) => props.onChange({ scope })}
  />
);

/** More would be a wall; they can be typed. */
const offeredModels = 12;

/** Picked from what backends serve, or typed. */
export function ModelsField(props: KeyFieldsProps): JSX.Element {
  const served = useServedModelsQuery();
  const [text, setText] = createSignal(untrack(() => props.key?.allowed_models?.join(", ") ?? ""));
  const names = (): readonly string[] => listOf(text()) ?? [];
  const change = (changed: string): void => {
    setText(changed);
    props.onChange({ allowed_models: listOf(changed) });
  };
  const toggle = (name: string): void =>
    change((names().includes(name) ? names().filter((other) => other !== name) : [...names(), name]).join(", "));
  const isServed = (name: string): boolean =>
    served.data?.some((one) => (name.endsWith("*") ? one.startsWith(name.slice(0, -1)) : one === name)) ?? true;
  const unknown = (): string[] => names().filter((name) => !isServed(name));
  return (
    <>
      <InputField
        label="Allowed models"
        hint="Names or prefixes such as qwen*, separated by commas. Empty: all."
        spellcheck={false}
        value={text()}
        onText={change}
      />
      <Show when={unknown().length > 0}>
        <p class="hint" role="status">
          No backend serves {unknown().join(", ")} now.
        </p>
      </Show>
      <div class="tags" role="group" aria-label="Models that are served">
        <For each={served.data?.slice(0, offeredModels)}>
          {(name) => (
            <Button aria-pressed={names().includes(name)} onClick={() => toggle(name)}>
              {name}
            </Button>
          )}
        </For>
      </div>
    </>
  );
}

export const PathsField = (props: {
  value: readonly string[] | null;
  onChange: (changed: Pick<KeyFields, "allowed_paths">) => void;
}): JSX.Element => (
  <InputField
    label="Allowed paths"
    hint="Such as /v1/chat/*, /v1/models, separated by commas. Empty: all."
    spellcheck={false}
    value={props.value?.join(", ") ?? ""}
    onText={(text) => props.onChange({ allowed_paths: listOf(text) })}
  />
);

function ExpiryField(props: KeyFieldsProps): JSX.Element {
  const before = (): string | null => props.key?.expires_at ?? null;
  const change = (text: string): void => {
    const at = parseFieldTime(text);
    props.onChange({ expires_at: at === undefined ? null : new Date(at).toISOString() });
  };
  return (
    <InputField
      label="Expires"
      hint={`In ${zoneName(now())}. Empty: never.`}
      type="datetime-local"
      value={fieldTime(before())}
      onText={change}
    />
  );
}

const usersFromLabels: Readonly<Record<string, string>> = {
  "open-webui": "Open WebUI",
  body: "The body of requests",
};
export const usersFromLabel = (from: string): string => usersFromLabels[from] ?? from;

/** Who tells the users of a key apart. Other ways than these are the API's. */
function UsersField(props: { value: string | null; onChange: (from: string | null) => void }): JSX.Element {
  const offered = (): Set<string> =>
    new Set([...Object.keys(usersFromLabels), ...(props.value === null ? [] : [props.value])]);
  return (
    <LabelledSelect
      label="Users come from"
      class="field"
      options={[
        { value: "", label: "Nowhere: all are one" },
        ...Array.from(offered(), (from) => ({ value: from, label: usersFromLabel(from) })),
      ]}
      value={props.value ?? ""}
      onChange={(from) => props.onChange(from || null)}
    />
  );
}

/** For the signatures of Open WebUI. */
const randomSecret = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(24)), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** They hold for each user of the key that has none of its own. */
function UserLimits(props: KeyFieldsProps): JSX.Element {
  let limits: NonNullable<KeyFields["user_limits"]> = untrack(() => ({ ...props.key?.user_limits }));
  const change = (changed: NonNullable<KeyFields["user_limits"]>): void => {
    limits = { ...limits, ...changed };
    const isSet = Object.values(limits).some((limit) => limit !== null);
    props.onChange({ user_limits: isSet ? limits : null });
  };
  return (
    <fieldset class="user-limits">
      <legend>Each user of the key</legend>
      <LimitFields of={props.key?.user_limits ?? undefined} onChange={change} />
    </fieldset>
  );
}
