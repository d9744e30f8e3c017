import { createMemo, createSignal, For, type JSX, Show, untrack } from "solid-js";
import { Portal } from "solid-js/web";
import { now } from "../lib/server-clock.ts";
import { fieldTime, parseFieldTime, zoneName } from "../lib/time-zone.ts";
import { type Key, useTeamsQuery } from "../queries.ts";
import { TextField } from "../ui/controls.tsx";
import { listOf } from "./key-limits.ts";
import type { KeyFields } from "./key-mutations.ts";
import { LimitFields, NoteFields } from "./limit-fields.tsx";
import { TeamDialog } from "./team-dialog.tsx";

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
  // It does not move when its first team was made.
  const hadTeams = createMemo<boolean | undefined>((before) => before ?? (teams.data && teams.data.length > 0));
  return (
    <>
      <LimitFields
        of={props.key}
        onChange={props.onChange}
        onExtra={isNew ? undefined : (extra) => props.onChange({ limits_extra: extra })}
        more={
          <Show when={hadTeams() === false}>
            <TeamField {...props} />
          </Show>
        }
      >
        <Show when={hadTeams()}>
          <TeamField {...props} />
        </Show>
        <ScopeField {...props} />
      </LimitFields>
      <ModelsField {...props} />
      <PathsField value={props.key?.allowed_paths ?? null} onChange={props.onChange} />
      <ExpiryField {...props} />
      <TextField label="Owner" hint="The person or team that is responsible for the key.">
        {(ids) => (
          <input
            {...ids}
            autocomplete="off"
            maxlength="240"
            value={props.key?.owner ?? ""}
            onInput={(event) => props.onChange({ owner: event.currentTarget.value.trim() || null })}
          />
        )}
      </TextField>
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
  <label class="field">
    <span>May be used for</span>
    <select
      onChange={(event) =>
        props.onChange({ scope: scopes.find(({ value }) => value === event.currentTarget.value)?.value ?? "all" })
      }
    >
      <For each={scopes}>
        {({ value, label }) => (
          <option value={value} selected={value === (props.key?.scope ?? "all")}>
            {label}
          </option>
        )}
      </For>
    </select>
  </label>
);

export const ModelsField = (props: KeyFieldsProps): JSX.Element => (
  <TextField label="Allowed models" hint="Names or prefixes such as qwen*, separated by commas. Empty: all.">
    {(ids) => (
      <input
        {...ids}
        autocomplete="off"
        spellcheck={false}
        value={props.key?.allowed_models?.join(", ") ?? ""}
        onInput={(event) => props.onChange({ allowed_models: listOf(event.currentTarget.value) })}
      />
    )}
  </TextField>
);

export const PathsField = (props: {
  value: readonly string[] | null;
  onChange: (changed: Pick<KeyFields, "allowed_paths">) => void;
}): JSX.Element => (
  <TextField label="Allowed paths" hint="Such as /v1/chat/*, /v1/models, separated by commas. Empty: all.">
    {(ids) => (
      <input
        {...ids}
        autocomplete="off"
        spellcheck={false}
        value={props.value?.join(", ") ?? ""}
        onInput={(event) => props.onChange({ allowed_paths: listOf(event.currentTarget.value) })}
      />
    )}
  </TextField>
);

function ExpiryField(props: KeyFieldsProps): JSX.Element {
  const before = (): string | null => props.key?.expires_at ?? null;
  const change = (text: string): void => {
    const at = parseFieldTime(text);
    props.onChange({ expires_at: at === undefined ? null : new Date(at).toISOString() });
  };
  return (
    <TextField label="Expires" hint={`In ${zoneName(now())}. Empty: never.`}>
      {(ids) => (
        <input
          {...ids}
          type="datetime-local"
          value={fieldTime(before())}
          onInput={(event) => change(event.currentTarget.value)}
        />
      )}
    </TextField>
  );
}

/** Whose limits hold beside the key's own. The first team is made here. */
export function TeamField(props: KeyFieldsProps): JSX.Element {
  const teams = useTeamsQuery();
  const [teamId, setTeamId] = createSignal(untrack(() => props.key?.team_id ?? null));
  const [creates, setCreates] = createSignal(false);
  const choose = (id: number | null): void => {
    setTeamId(id);
    props.onChange({ team_id: id });
  };
  const change = (select: HTMLSelectElement): void => {
    if (select.value !== "new") return choose(select.value === "" ? null : Number(select.value));
    select.value = String(teamId() ?? "");
    setCreates(true);
  };
  return (
    <>
      <label class="field">
        <span>Team</span>
        <select onChange={(event) => change(event.currentTarget)}>
          <option value="" selected={teamId() === null}>
            None
          </option>
          <For each={teams.data}>
            {(team) => (
              <option value={team.id} selected={team.id === teamId()}>
                {team.name}
              </option>
            )}
          </For>
          <option value="new">New team…</option>
        </select>
      </label>
      <Show when={creates()}>
        {/* A form cannot be within another one. */}
        <Portal>
          <TeamDialog onSaved={({ id }) => choose(id)} onClose={() => setCreates(false)} />
        </Portal>
      </Show>
    </>
  );
}
