import { useMutation, type UseMutationResult, useQuery, useQueryClient } from "@tanstack/solid-query";
import { createSignal, For, type JSX, onMount, Show } from "solid-js";
import { api, responseBody } from "../client.ts";
import { count, plural } from "../lib/format.ts";
import { dayMs } from "../lib/seoul-time.ts";
import { serverNow } from "../lib/server-clock.ts";
import { showToast } from "../lib/toasts.ts";
import { type QueryResult, useHasTeams, useTeamsQuery } from "../queries.ts";
import { TextField } from "../ui/controls.tsx";
import { Dialog, FormEnd } from "../ui/dialog.tsx";
import { NotLoaded, Panel } from "../ui/panel.tsx";
import { SkeletonList } from "../ui/skeleton.tsx";
import { limitKinds, limitNames } from "../../../src/domain/limits.ts";
import { type EditedKey, KeyFieldInputs, ModelsField } from "./key-fields.tsx";
import { amountOf } from "./key-limits.ts";
import type { KeyFields } from "./key-mutations.ts";
import { LimitFields } from "./limit-fields.tsx";
import { TeamField } from "./subject-dialog.tsx";

const getKeyPolicy = () => responseBody(api["key-policy"].get());
type KeyPolicy = Awaited<ReturnType<typeof getKeyPolicy>>;
type Defaults = KeyPolicy["defaults"];
type Ceilings = KeyPolicy["member"];

const useKeyPolicyQuery = (): QueryResult<typeof getKeyPolicy> =>
  useQuery(() => ({ queryKey: ["key-policy"], queryFn: getKeyPolicy }));

/** A new key as it will be, unless its fields are changed. */
const newKeyOf = ({ expires_in_days: days, ...defaults }: Defaults): EditedKey => ({
  ...defaults,
  expires_at: days === null ? null : new Date(serverNow() + days * dayMs).toISOString(),
});

function useSaveKeyPolicy(): UseMutationResult<unknown, Error, KeyPolicy> {
  const queries = useQueryClient();
  return useMutation(() => ({
    mutationFn: (policy: KeyPolicy) => responseBody(api["key-policy"].put(policy)),
    onSuccess: (policy) => {
      queries.setQueryData(["key-policy"], policy);
      showToast("What new keys get was saved");
    },
  }));
}

/** What new keys get, as a list; nothing if that is nothing. */
function PolicyFacts(props: { policy: Partial<Defaults & Ceilings> }): JSX.Element {
  const teams = useTeamsQuery();
  const facts = (): string[] => {
    const { allowed_models: models = null, expires_in_days: days = null, team_id: team = null } = props.policy;
    const { max_keys: keys = null } = props.policy;
    return [
      ...(keys === null ? [] : [plural(keys, "key")]),
      ...limitNames.flatMap((name) => amountOf(props.policy[name] ?? null, limitKinds[name].unit) ?? []),
      ...(models === null ? [] : [`Models: ${models.join(", ")}`]),
      ...(days === null ? [] : [`Expires after ${plural(days, "day")}`]),
      ...(team === null ? [] : [`Team: ${teams.data?.find(({ id }) => id === team)?.name ?? count(team)}`]),
    ];
  };
  return (
    <ul class="tags">
      <For each={facts()}>{(fact) => <li class="tag">{fact}</li>}</For>
    </ul>
  );
}

const isSet = (policy: Defaults | Ceilings): boolean => Object.values(policy).some((value) => value !== null);

/** In a dialog that makes keys: what these get that is not said there. Nothing without a policy. */
export function PolicyNote(): JSX.Element {
  const policy = useKeyPolicyQuery();
  return (
    <Show when={policy.data && isSet(policy.data.defaults) && policy.data.defaults}>
      {(set) => (
        <div>
          <p>Unless you say otherwise here, a new key gets what Settings have for it:</p>
          <PolicyFacts policy={set()} />
        </div>
      )}
    </Show>
  );
}

/** In the form of a new key: its fields, as the policy fills them. */
export function NewKeyFields(props: { onChange: (changed: KeyFields) => void }): JSX.Element {
  const policy = useKeyPolicyQuery();
  return (
    <Show when={!policy.isPending}>
      <KeyFieldInputs key={policy.data && newKeyOf(policy.data.defaults)} onChange={props.onChange} />
    </Show>
  );
}

/** On Settings: what new keys get. */
export function KeyPolicyPanel(): JSX.Element {
  const policy = useKeyPolicyQuery();
  const [editing, setEditing] = createSignal(false);
  return (
    <Panel
      title="New keys"
      hint="What a key gets unless the request that creates it says otherwise"
      query={policy}
      actions={
        <button class="button" type="button" disabled={policy.data === undefined} onClick={() => setEditing(true)}>
          Edit
        </button>
      }
    >
      <Show when={policy.data} fallback={policy.isError ? <NotLoaded query={policy} /> : <SkeletonList />}>
        {(saved) => (
          <>
            <div class="panel-body">
              <Show when={isSet(saved().defaults)} fallback={<p>New keys have no limits.</p>}>
                <PolicyFacts policy={saved().defaults} />
              </Show>
              <Show when={isSet(saved().member)}>
                <p>Keys that people make for themselves have at most:</p>
                <PolicyFacts policy={saved().member} />
              </Show>
            </div>
            <Show when={editing()}>
              <KeyPolicyDialog policy={saved()} onClose={() => setEditing(false)} />
            </Show>
          </>
        )}
      </Show>
    </Panel>
  );
}

const NumberField = (props: {
  label: string;
  hint: string;
  max: number;
  value: number | null;
  onChange: (value: number | null) => void;
}): JSX.Element => (
  <TextField label={props.label} hint={props.hint}>
    {(ids) => (
      <input
        {...ids}
        type="number"
        min="1"
        max={props.max}
        value={props.value ?? ""}
        onInput={({ currentTarget: { value } }) => props.onChange(value === "" ? null : Number(value))}
      />
    )}
  </TextField>
);

function KeyPolicyDialog(props: { policy: KeyPolicy; onClose: () => void }): JSX.Element {
  const save = useSaveKeyPolicy();
  const hasTeams = useHasTeams();
  const [defaults, setDefaults] = createSignal<Partial<Defaults>>({});
  const [member, setMember] = createSignal<Partial<Ceilings>>({});
  const set = (changed: Partial<Defaults>): void => void setDefaults((before) => ({ ...before, ...changed }));
  const setMost = (changed: Partial<Ceilings>): void => void setMember((before) => ({ ...before, ...changed }));
  let form: HTMLFormElement | undefined;
  onMount(() => form?.querySelector("input")?.focus());
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const policy = {
      defaults: { ...props.policy.defaults, ...defaults() },
      member: { ...props.policy.member, ...member() },
    };
    save.mutate(policy, { onSuccess: () => props.onClose() });
  };
  const edited = (): EditedKey => newKeyOf(props.policy.defaults);
  return (
    <Dialog title="What new keys get" onClose={() => props.onClose()}>
      <form ref={form} onSubmit={submit}>
        <LimitFields of={edited()} onChange={set}>
          <NumberField
            label="Expires after days"
            hint="Up to 3,650. Empty: never."
            max={3650}
            value={props.policy.defaults.expires_in_days}
            onChange={(days) => set({ expires_in_days: days })}
          />
          <Show when={hasTeams()}>
            <TeamField value={props.policy.defaults.team_id} onChange={(id) => set({ team_id: id })} />
          </Show>
        </LimitFields>
        <ModelsField key={edited()} onChange={set} />
        <details>
          <summary>Keys that people make for themselves</summary>
          <p class="hint">The most that such a key may have. Empty: what is said above.</p>
          <LimitFields of={props.policy.member} onChange={setMost}>
            <NumberField
              label="Keys of one person"
              hint="Up to 1,000. Empty: 10."
              max={1000}
              value={props.policy.member.max_keys}
              onChange={(keys) => setMost({ max_keys: keys })}
            />
            <NumberField
              label="Such a key expires after days"
              hint="Up to 3,650."
              max={3650}
              value={props.policy.member.expires_in_days}
              onChange={(days) => setMost({ expires_in_days: days })}
            />
          </LimitFields>
        </details>
        <FormEnd error={save.error} action="Save" isPending={save.isPending} onCancel={props.onClose} />
      </form>
    </Dialog>
  );
}
