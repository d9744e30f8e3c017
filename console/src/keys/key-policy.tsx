import { useQuery } from "@tanstack/solid-query";
import { createSignal, For, type JSX, onMount, Show } from "solid-js";
import { api, causeOf, responseBody } from "../client.ts";
import { count, plural } from "../lib/format.ts";
import { dayMs } from "../lib/seoul-time.ts";
import { serverNow } from "../lib/server-clock.ts";
import { type QueryResult, useChange, useHasTeams, useSettingsQuery, useTeamsQuery } from "../queries.ts";
import { Button, InputField } from "../ui/controls.tsx";
import { Dialog, FormEnd } from "../ui/dialog.tsx";
import { Panel } from "../ui/panel.tsx";
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

const useSaveKeyPolicy = () =>
  useChange((policy: KeyPolicy) => responseBody(api["key-policy"].put(policy)), {
    done: () => "What new keys get was saved",
    refreshes: ["key-policy"],
  });

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

/** On Settings: what new keys get. A line while that is nothing. */
export function KeyPolicyPanel(): JSX.Element {
  const policy = useKeyPolicyQuery();
  const settings = useSettingsQuery();
  const [editing, setEditing] = createSignal<"defaults" | "member">();
  const close = (): undefined => setEditing();
  const Actions = (): JSX.Element => (
    <>
      <Show when={canSignIn()}>
        <Button disabled={policy.data === undefined} onClick={() => setEditing("member")}>
          Keys that people make
        </Button>
      </Show>
      <Button
        disabled={policy.data === undefined}
        aria-label="Edit what new keys get"
        onClick={() => setEditing("defaults")}
      >
        Edit
      </Button>
    </>
  );
  /** Else nobody makes any. */
  const canSignIn = (): boolean =>
    settings.data?.settings.some(({ name, is_set: isSetting }) => name === "OIDC_ISSUER" && isSetting) === true;
  return (
    <>
      <Show
        when={policy.data && (isSet(policy.data.defaults) || isSet(policy.data.member)) && policy.data}
        fallback={
          <div class="actions">
            <p class="hint">{lineOf(policy)}</p>
            <Actions />
          </div>
        }
      >
        {(saved) => (
          <Panel
            title="New keys"
            hint="What a key gets unless the request that creates it says otherwise"
            query={policy}
            actions={<Actions />}
          >
            <div class="panel-body">
              <Show when={isSet(saved().defaults)} fallback={<p>New keys have no limits.</p>}>
                <PolicyFacts policy={saved().defaults} />
              </Show>
              <Show when={isSet(saved().member)}>
                <p>Keys that people make for themselves have at most:</p>
                <PolicyFacts policy={saved().member} />
              </Show>
            </div>
          </Panel>
        )}
      </Show>
      <Show when={editing() === "defaults" && policy.data}>
        {(saved) => <KeyPolicyDialog policy={saved()} onClose={close} />}
      </Show>
      <Show when={editing() === "member" && policy.data}>
        {(saved) => <CeilingsDialog policy={saved()} onClose={close} />}
      </Show>
    </>
  );
}

function lineOf({ isPending, isError, error }: ReturnType<typeof useKeyPolicyQuery>): string {
  if (isError) return `What new keys get is not known: ${causeOf(error)}.`;
  return isPending ? "\u00a0" : "New keys have no limits.";
}

const NumberField = (props: {
  label: string;
  hint: string;
  max: number;
  value: number | null;
  onChange: (value: number | null) => void;
}): JSX.Element => (
  <InputField
    label={props.label}
    hint={props.hint}
    type="number"
    min="1"
    max={props.max}
    value={props.value ?? ""}
    onText={(text) => props.onChange(text === "" ? null : Number(text))}
  />
);

interface PolicyDialogProps {
  policy: KeyPolicy;
  onClose: () => void;
}

function KeyPolicyDialog(props: PolicyDialogProps): JSX.Element {
  const hasTeams = useHasTeams();
  const [fields, setFields] = createSignal<Partial<Defaults>>({});
  const set = (changed: Partial<Defaults>): void => void setFields((before) => ({ ...before, ...changed }));
  const edited = (): EditedKey => newKeyOf(props.policy.defaults);
  return (
    <PolicyForm
      {...props}
      title="What new keys get"
      changed={() => ({ ...props.policy, defaults: { ...props.policy.defaults, ...fields() } })}
    >
      <LimitFields of={edited()} onChange={set}>
        <DaysField value={props.policy.defaults.expires_in_days} none="never" onChange={set} />
        <Show when={hasTeams()}>
          <TeamField value={props.policy.defaults.team_id} onChange={(id) => set({ team_id: id })} />
        </Show>
      </LimitFields>
      <ModelsField key={edited()} onChange={set} />
    </PolicyForm>
  );
}

/** The most that who signs in may ask for. */
function CeilingsDialog(props: PolicyDialogProps): JSX.Element {
  const [fields, setFields] = createSignal<Partial<Ceilings>>({});
  const set = (changed: Partial<Ceilings>): void => void setFields((before) => ({ ...before, ...changed }));
  return (
    <PolicyForm
      {...props}
      title="Keys that people make"
      changed={() => ({ ...props.policy, member: { ...props.policy.member, ...fields() } })}
    >
      <p class="hint">The most that a key may have which somebody who signed in makes. Empty: what new keys get.</p>
      <LimitFields of={props.policy.member} onChange={set}>
        <NumberField
          label="Keys of one person"
          hint="Up to 1,000. Empty: 10."
          max={1000}
          value={props.policy.member.max_keys}
          onChange={(keys) => set({ max_keys: keys })}
        />
        <DaysField value={props.policy.member.expires_in_days} none="as new keys" onChange={set} />
      </LimitFields>
    </PolicyForm>
  );
}

function PolicyForm(
  props: PolicyDialogProps & { title: string; changed: () => KeyPolicy; children: JSX.Element },
): JSX.Element {
  const save = useSaveKeyPolicy();
  let form: HTMLFormElement | undefined;
  onMount(() => form?.querySelector("input")?.focus());
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    save.mutate(props.changed(), { onSuccess: () => props.onClose() });
  };
  return (
    <Dialog title={props.title} onClose={() => props.onClose()}>
      <form ref={form} onSubmit={submit}>
        {props.children}
        <FormEnd error={save.error} action="Save" isPending={save.isPending} onCancel={props.onClose} />
      </form>
    </Dialog>
  );
}

const DaysField = (props: {
  value: number | null;
  none: string;
  onChange: (changed: { expires_in_days: number | null }) => void;
}): JSX.Element => (
  <NumberField
    label="Expires after days"
    hint={`Up to 3,650. Empty: ${props.none}.`}
    max={3650}
    value={props.value}
    onChange={(days) => props.onChange({ expires_in_days: days })}
  />
);
