import { useMutation, type UseMutationResult, useQueryClient } from "@tanstack/solid-query";
import { createSignal, type JSX, onMount, Show } from "solid-js";
import { Portal } from "solid-js/web";
import { api, responseBody } from "../client.ts";
import { serverNow } from "../lib/server-clock.ts";
import { showToast } from "../lib/toasts.ts";
import { useChange, type Team, type User, useTeamsQuery, useUsersQuery } from "../queries.ts";
import { InputField, LabelledSelect } from "../ui/controls.tsx";
import { CopyLine } from "../ui/copy-button.tsx";
import { Dialog, FormEnd } from "../ui/dialog.tsx";
import { RelativeTime } from "../ui/relative-time.tsx";
import type { LimitName } from "../../../src/domain/limits.ts";
import { LimitFields, NoteFields, NotifyField } from "./limit-fields.tsx";

/** What POST and PATCH take of a team or a user besides its name; null clears a field. */
type SubjectFields = Partial<Pick<Team, LimitName | "note" | "limits_extra" | "priority" | "notify">> & {
  tags?: string[] | null;
};

/** Creates a team, or changes one. The list has it once the mutation has succeeded. */
const useSaveTeam = () =>
  useChange(
    ({ team, name, fields }: { team: Team | undefined; name: string; fields: SubjectFields }): Promise<Team> =>
      responseBody(
        team === undefined
          ? api.teams.post({ name, ...fields })
          : api.teams({ id: team.id }).patch({ name, ...fields }),
      ),
    { refreshes: ["teams"] },
  );

interface UserChange {
  user: User;
  fields: SubjectFields & { name?: string; team_id?: number | null; is_active?: boolean };
}

/** Changes a user. One that is switched off loses what it runs, which a message says; that can be undone. */
export function useChangeUser(): UseMutationResult<User, Error, UserChange> {
  const queries = useQueryClient();
  const mutation: UseMutationResult<User, Error, UserChange> = useMutation(() => ({
    mutationFn: ({ user, fields }: UserChange) => responseBody(api.users({ id: user.id }).patch(fields)),
    onError: (error, { user }) => showToast(`“${user.name}” was not changed: ${error.message}`, "error"),
    onSuccess: (_, { user, fields }) => {
      if (fields.is_active !== false) return;
      const undo = (): void => mutation.mutate({ user, fields: { is_active: true } });
      showToast(`“${user.name}” is off, and what ran was ended`, "info", undo);
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["users"] }),
  }));
  return mutation;
}

/** Deletes a team; its keys stay. */
export const useDeleteTeam = () =>
  useChange(({ id }: Team) => responseBody(api.teams({ id }).delete()), {
    done: ({ name }) => `“${name}” was deleted`,
    failed: ({ name }) => `“${name}” was not deleted`,
  });

/** @param props.team undefined: a new one */
export function TeamDialog(props: { team?: Team; onSaved?: (team: Team) => void; onClose: () => void }): JSX.Element {
  const saveTeam = useSaveTeam();
  const save = (name: string, fields: SubjectFields, onError: () => void): void => {
    const onSuccess = (saved: Team): void => {
      props.onSaved?.(saved);
      props.onClose();
    };
    saveTeam.mutate({ team: props.team, name, fields }, { onSuccess, onError });
  };
  return (
    <SubjectDialog
      title={props.team === undefined ? "New team" : `Limits and details of “${props.team.name}”`}
      of={props.team}
      nameHint="Refusals tell it to those who use the team’s keys."
      action={props.team === undefined ? "Create team" : "Save"}
      mutation={saveTeam}
      onSave={save}
      onClose={props.onClose}
    />
  );
}

export function UserDialog(props: { user: User; onClose: () => void }): JSX.Element {
  const changeUser = useChangeUser();
  const [team, setTeam] = createSignal<{ team_id?: number | null }>({});
  return (
    <SubjectDialog
      title={`Limits and details of “${props.user.name}”`}
      of={props.user}
      nameHint={`As shown here. Its front end calls it ${props.user.external}.`}
      action="Save"
      mutation={changeUser}
      onSave={(name, fields, onError) =>
        changeUser.mutate(
          { user: props.user, fields: { name, ...fields, ...team() } },
          { onSuccess: () => props.onClose(), onError },
        )
      }
      onClose={props.onClose}
    >
      <TeamField value={props.user.team_id} onChange={(id) => setTeam({ team_id: id })} />
    </SubjectDialog>
  );
}

interface SubjectDialogProps {
  title: string;
  /** Undefined: a new one. */
  of: Team | User | undefined;
  nameHint: string;
  action: string;
  mutation: { readonly error: Error | null; readonly isPending: boolean };
  /** @param fields those that were changed */
  onSave: (name: string, fields: SubjectFields, onError: () => void) => void;
  onClose: () => void;
  /** Beside the limits. */
  children?: JSX.Element;
}

/** The name, limits and notes of a team or a user. */
function SubjectDialog(props: SubjectDialogProps): JSX.Element {
  const [fields, setFields] = createSignal<SubjectFields>({});
  let name: HTMLInputElement | undefined;
  onMount(() => name?.focus());
  const change = (changed: SubjectFields): void => void setFields((before) => ({ ...before, ...changed }));
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    props.onSave(name?.value ?? "", fields(), () => name?.focus());
  };
  return (
    <Dialog title={props.title} onClose={() => props.onClose()}>
      <form onSubmit={submit}>
        <InputField
          label="Name"
          hint={props.nameHint}
          ref={name}
          required
          maxlength="240"
          value={props.of?.name ?? ""}
          placeholder="e.g. research"
        />
        <LimitFields
          of={props.of}
          onChange={change}
          onExtra={props.of === undefined ? undefined : (extra) => change({ limits_extra: extra })}
          more={<NotifyField of={props.of} onChange={change} />}
        >
          {props.children}
        </LimitFields>
        <NoteFields of={props.of} noteHint="Up to 1,000 characters." onChange={change} />
        <FormEnd {...props.mutation} action={props.action} onCancel={props.onClose} />
      </form>
    </Dialog>
  );
}

/** Whose limits hold beside those of a key or a user. The first team is made here. */
export function TeamField(props: { value: number | null; onChange: (id: number | null) => void }): JSX.Element {
  const teams = useTeamsQuery();
  const [chosen, setChosen] = createSignal<{ id: number | null }>();
  const [creates, setCreates] = createSignal(false);
  const teamId = (): number | null => (chosen() ?? { id: props.value }).id;
  const choose = (id: number | null): void => {
    setChosen({ id });
    props.onChange(id);
  };
  return (
    <>
      <LabelledSelect
        label="Team"
        class="field"
        options={[
          { value: "", label: "None" },
          ...(teams.data ?? []).map(({ id, name }) => ({ value: String(id), label: name })),
          { value: "new", label: "New team…" },
        ]}
        // While a team is made, it is the one before.
        value={creates() ? "new" : String(teamId() ?? "")}
        onChange={(value) => (value === "new" ? setCreates(true) : choose(value === "" ? null : Number(value)))}
      />
      <Show when={creates()}>
        {/* A form cannot be within another one. */}
        <Portal>
          <TeamDialog onSaved={({ id }) => choose(id)} onClose={() => setCreates(false)} />
        </Portal>
      </Show>
    </>
  );
}

/** Waits until the front end names somebody. */
export function FirstUser(props: { keyId: number }): JSX.Element {
  const users = useUsersQuery(() => ({ key: props.keyId }), 2000);
  const latest = () =>
    users.data?.users
      .flatMap(({ name, last_seen_at: at }) => (at === null ? [] : [{ name, at: Date.parse(at) }]))
      .toSorted((a, b) => b.at - a.at)[0];
  return (
    <p role="status">
      <Show when={latest()} fallback="Waiting for the first request that names its user…">
        {(user) => (
          <>
            Last seen: <bdi>{user().name}</bdi>,{" "}
            <span aria-live="off">
              <RelativeTime at={Math.min(user().at, serverNow())} />
            </span>
          </>
        )}
      </Show>
    </p>
  );
}

/** What makes Open WebUI say whose a request is, signed. */
export const OpenWebUiLines = (props: { secret: string }): JSX.Element => (
  <>
    <p>Start Open WebUI with these two. Tollgate does not show the secret again.</p>
    <CopyLine text="ENABLE_FORWARD_USER_INFO_HEADERS=true" what="the first line" />
    <CopyLine text={`FORWARD_USER_INFO_HEADER_JWT_SECRET=${props.secret}`} what="the second line" />
  </>
);
