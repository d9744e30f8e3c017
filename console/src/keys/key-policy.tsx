import { useMutation, type UseMutationResult, useQuery, useQueryClient } from "@tanstack/solid-query";
import { createSignal, For, type JSX, onMount, Show } from "solid-js";
import { api, responseBody } from "../client.ts";
import { count, plural } from "../lib/format.ts";
import { dayMs } from "../lib/seoul-time.ts";
import { serverNow } from "../lib/server-clock.ts";
import { showToast } from "../lib/toasts.ts";
import { type QueryResult, useHasTeams, useTeamsQuery } from "../queries.ts";
import { Button, InputField } from "../ui/controls.tsx";
import { Dialog, FormEnd } from "../ui/dialog.tsx";
import { NotLoaded, Panel } from "../ui/panel.tsx";
import { SkeletonList } from "../ui/skeleton.tsx";
import { limitKinds, limitNames } from "../../../src/domain/limits.ts";
import { type EditedKey, KeyFieldInputs, ModelsField } from "./key-fields.tsx";
import { amountOf } from "./key-limits.ts";
import type { KeyFields } from "./key-mutations.ts";
import { LimitFields } from "./limit-fields.tsx";
import { TeamField } from "./subject-dialog.tsx";

const getKeyPolicy = async () => (await responseBody(api["key-policy"].get())).defaults;
type KeyPolicy = Awaited<ReturnType<typeof getKeyPolicy>>;

const useKeyPolicyQuery = (): QueryResult<typeof getKeyPolicy> =>
  useQuery(() => ({ queryKey: ["key-policy"], queryFn: getKeyPolicy }));

/** A new key as it will be, unless its fields are changed. */
const newKeyOf = ({ expires_in_days: days, ...defaults }: KeyPolicy): EditedKey => ({
  ...defaults,
  expires_at: days === null ? null : new Date(serverNow() + days * dayMs).toISOString(),
});

function useSaveKeyPolicy(): UseMutationResult<unknown, Error, KeyPolicy> {
  const queries = useQueryClient();
  return useMutation(() => ({
    mutationFn: (defaults: KeyPolicy) => responseBody(api["key-policy"].put({ defaults })),
    onSuccess: ({ defaults }) => {
      queries.setQueryData(["key-policy"], defaults);
      showToast("What new keys get was saved");
    },
  }));
}

/** What new keys get, as a list; nothing if that is nothing. */
function PolicyFacts(props: { policy: KeyPolicy }): JSX.Element {
  const teams = useTeamsQuery();
  const facts = (): string[] => {
    const { allowed_models: models, expires_in_days: days, team_id: team } = props.policy;
    return [
      ...limitNames.flatMap((name) => amountOf(props.policy[name], limitKinds[name].unit) ?? []),
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

const isSet = (policy: KeyPolicy): boolean => Object.values(policy).some((value) => value !== null);

/** In a dialog that makes keys: what these get that is not said there. Nothing without a policy. */
export function PolicyNote(): JSX.Element {
  const policy = useKeyPolicyQuery();
  return (
    <Show when={policy.data && isSet(policy.data) && policy.data}>
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
      <KeyFieldInputs key={policy.data && newKeyOf(policy.data)} onChange={props.onChange} />
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
        <Button disabled={policy.data === undefined} onClick={() => setEditing(true)}>
          Edit
        </Button>
      }
    >
      <Show when={policy.data} fallback={policy.isError ? <NotLoaded query={policy} /> : <SkeletonList />}>
        {(saved) => (
          <>
            <div class="panel-body">
              <Show when={isSet(saved())} fallback={<p>New keys have no limits.</p>}>
                <PolicyFacts policy={saved()} />
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

function KeyPolicyDialog(props: { policy: KeyPolicy; onClose: () => void }): JSX.Element {
  const save = useSaveKeyPolicy();
  const hasTeams = useHasTeams();
  const [fields, setFields] = createSignal<Partial<KeyPolicy>>({});
  const set = (changed: Partial<KeyPolicy>): void => void setFields((before) => ({ ...before, ...changed }));
  let form: HTMLFormElement | undefined;
  onMount(() => form?.querySelector("input")?.focus());
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    save.mutate({ ...props.policy, ...fields() }, { onSuccess: () => props.onClose() });
  };
  const edited = (): EditedKey => newKeyOf(props.policy);
  return (
    <Dialog title="What new keys get" onClose={() => props.onClose()}>
      <form ref={form} onSubmit={submit}>
        <LimitFields of={edited()} onChange={set}>
          <InputField
            label="Expires after days"
            hint="Up to 3,650. Empty: never."
            type="number"
            min="1"
            max="3650"
            value={props.policy.expires_in_days ?? ""}
            onText={(text) => set({ expires_in_days: text === "" ? null : Number(text) })}
          />
          <Show when={hasTeams()}>
            <TeamField value={props.policy.team_id} onChange={(id) => set({ team_id: id })} />
          </Show>
        </LimitFields>
        <ModelsField key={edited()} onChange={set} />
        <FormEnd error={save.error} action="Save" isPending={save.isPending} onCancel={props.onClose} />
      </form>
    </Dialog>
  );
}
