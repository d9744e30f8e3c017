import { createSignal, type JSX, onMount, Show } from "solid-js";
import type { Team } from "../queries.ts";
import { TextField } from "../ui/controls.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { type TeamFields, useSaveTeam } from "./key-mutations.ts";
import { LimitFields, NoteFields } from "./limit-fields.tsx";

interface TeamDialogProps {
  /** Undefined: a new one. */
  team?: Team;
  onSaved?: (team: Team) => void;
  onClose: () => void;
}

/** A team's name, limits and notes. */
export function TeamDialog(props: TeamDialogProps): JSX.Element {
  const saveTeam = useSaveTeam();
  const [fields, setFields] = createSignal<TeamFields>({});
  let name: HTMLInputElement | undefined;
  onMount(() => name?.focus());
  const change = (changed: TeamFields): void => void setFields((before) => ({ ...before, ...changed }));

  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    saveTeam.mutate(
      { team: props.team, name: name?.value ?? "", fields: fields() },
      {
        onSuccess: (saved) => {
          props.onSaved?.(saved);
          props.onClose();
        },
        onError: () => name?.focus(),
      },
    );
  };

  return (
    <Dialog
      title={props.team === undefined ? "New team" : `Limits and details of “${props.team.name}”`}
      onClose={() => props.onClose()}
    >
      <form onSubmit={submit}>
        <TextField label="Name" hint="Refusals tell it to those who use the team’s keys.">
          {(ids) => (
            <input
              {...ids}
              ref={name}
              required
              maxlength="240"
              autocomplete="off"
              value={props.team?.name ?? ""}
              placeholder="e.g. research"
            />
          )}
        </TextField>
        <LimitFields
          of={props.team}
          onChange={change}
          onExtra={props.team === undefined ? undefined : (extra) => change({ limits_extra: extra })}
        />
        <NoteFields of={props.team} noteHint="Up to 1,000 characters." onChange={change} />
        <Show when={saveTeam.error}>
          {(error) => (
            <p class="form-error" role="alert">
              {error().message}
            </p>
          )}
        </Show>
        <div class="dialog-actions">
          <button class="button" type="button" onClick={() => props.onClose()}>
            Cancel
          </button>
          <button class="button primary" type="submit" disabled={saveTeam.isPending}>
            {props.team === undefined ? "Create team" : "Save"}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
