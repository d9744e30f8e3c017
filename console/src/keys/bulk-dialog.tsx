import { createEffect, createSignal, type JSX, onMount, Show, untrack } from "solid-js";
import { count, plural } from "../lib/format.ts";
import { showToast } from "../lib/toasts.ts";
import { Button, Choice, InputField, SegmentedControl } from "../ui/controls.tsx";
import { Dialog, FormEnd } from "../ui/dialog.tsx";
import type { BulkDialogProps, BulkQuestion } from "./bulk-bar.tsx";
import { PathsField } from "./key-fields.tsx";
import { type BulkAction, type BulkReport, teamFinder, useBulkRun } from "./key-bulk.ts";
import { listOf } from "./key-limits.ts";
import { tagValues } from "./key-list.ts";
import { KeyFailures, KeyNames } from "./key-names.tsx";
import { TeamField } from "./subject-dialog.tsx";

interface Words {
  title: string;
  button: string;
  past: string;
  effect: string;
  /** The effect, if it is another one. */
  ofUsers?: string;
}

const words: Readonly<Record<BulkQuestion, Words>> = {
  switch: {
    title: "Switch on",
    button: "Switch on",
    past: "switched on",
    effect: "Their requests are accepted from the next one on.",
  },
  "switch-off": {
    title: "Switch off",
    button: "Switch off",
    past: "switched off",
    effect: "Their requests are refused from the next one on.",
    ofUsers: "Their requests are refused from the next one on, and what runs ends.",
  },
  delete: {
    title: "Delete",
    button: "Delete",
    past: "deleted",
    effect:
      "Their clients are refused from the next request on. The keys cannot be restored, and their totals are subtracted from the sums over all keys; their rows in the usage history stay.",
    ofUsers:
      "Their limits and names for the front end’s ids are lost, and their usage stays. One that comes again is a new user.",
  },
  paths: {
    title: "Limit the paths of",
    button: "Save",
    past: "changed",
    effect: "These take the place of the paths that each key may use now, from the next request on.",
  },
  team: {
    title: "Choose the team of",
    button: "Save",
    past: "changed",
    effect: "It takes the place of the team that each has now, from the next request on.",
  },
  tag: {
    title: "Tag",
    button: "Save",
    past: "changed",
    effect: "The filter finds keys by their tags.",
    ofUsers: "Their team can be chosen from them.",
  },
};

/** One question for all selected rows, then what failed. */
export function BulkDialog(props: BulkDialogProps): JSX.Element {
  const bulk = useBulkRun(untrack(() => props.noun));
  const [report, setReport] = createSignal<BulkReport>();
  const all = (): string => plural(props.rows.length, props.noun);
  const were = (): string => plural(props.rows.length, `${props.noun} was`, `${props.noun}s were`);
  const text = (): Words => words[props.question];
  const run = async (action: BulkAction): Promise<void> => {
    const result = await bulk.run(props.rows, action);
    props.onDone(result.failures.map(({ row }) => row));
    if (result.failures.length > 0) return void setReport(result);
    showToast(`${were()} ${text().past}`);
    props.onClose();
  };
  return (
    <Dialog
      title={`${text().title} ${all()}?`}
      persistent={bulk.progress() !== undefined}
      onClose={() => props.onClose()}
    >
      <Show
        when={report()}
        fallback={
          <Question
            {...props}
            effect={(props.noun === "user" && text().ofUsers) || text().effect}
            button={text().button}
            progress={bulk.progress()}
            onRun={(action) => void run(action)}
          />
        }
      >
        {(result) => (
          <>
            <p>
              {count(result().done)} of {were()} {text().past}.
            </p>
            <KeyFailures noun={props.noun} failures={result().failures} />
            <div class="dialog-actions">
              <Button onClick={() => props.onClose()}>Close</Button>
            </div>
          </>
        )}
      </Show>
    </Dialog>
  );
}

interface QuestionProps extends BulkDialogProps {
  effect: string;
  button: string;
  progress: number | undefined;
  onRun: (action: BulkAction) => void;
}

function Question(props: QuestionProps): JSX.Element {
  const [endRunning, setEndRunning] = createSignal(false);
  const [tags, setTags] = createSignal<string[]>([]);
  const [paths, setPaths] = createSignal<string[] | null>(null);
  const [adds, setAdds] = createSignal<"add" | "remove">("add");
  let teamOf: TeamOf = async () => null;
  let form: HTMLFormElement | undefined;
  // Cancel, so that Enter deletes nothing; a field, if there is one to fill.
  onMount(() => (form?.querySelector<HTMLElement>("input[required]") ?? form?.querySelector("button"))?.focus());
  // What runs of a user that is switched off ends anyway.
  const asksAboutRunning = (): boolean =>
    props.noun === "key" && (props.question === "delete" || props.question === "switch-off");
  const action = (): BulkAction => {
    if (props.question === "tag") return { kind: "tag", tags: tags(), adds: adds() === "add" };
    if (props.question === "team") return { kind: "team", teamOf };
    if (props.question === "paths") return { kind: "paths", paths: paths() };
    if (props.question === "delete") return { kind: "delete", endRunning: endRunning() };
    return { kind: "switch", isActive: props.question === "switch", endRunning: endRunning() };
  };
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    props.onRun(action());
  };
  return (
    <form ref={form} onSubmit={submit}>
      <p>
        <KeyNames names={props.rows.map(({ name }) => name)} />.
      </p>
      <p>{props.effect}</p>
      <Show when={props.question === "tag"}>
        <SegmentedControl
          label="What to do with the tags"
          options={[
            { value: "add", label: "Add" },
            { value: "remove", label: "Remove" },
          ]}
          value={adds()}
          onChange={setAdds}
        />
        <InputField
          label="Tags"
          hint={`Separated by commas. A ${props.noun} has at most 10.`}
          required
          onText={(text) => setTags(listOf(text) ?? [])}
        />
      </Show>
      <Show when={props.question === "team"}>
        <TeamChoice onChange={(chosen) => (teamOf = chosen)} />
      </Show>
      <Show when={props.question === "paths"}>
        <PathsField value={null} onChange={({ allowed_paths: given = null }) => setPaths(given)} />
      </Show>
      <Show when={asksAboutRunning()}>
        <Choice label="Also end their running responses" value={endRunning()} onChange={setEndRunning} />
      </Show>
      <Show when={props.progress !== undefined}>
        <progress aria-label="Progress" value={props.progress} max={props.rows.length} />
      </Show>
      <FormEnd
        action={props.button}
        danger={props.question === "delete"}
        isPending={props.progress !== undefined}
        disabled={props.question === "tag" && tags().length === 0}
        onCancel={props.onClose}
      />
    </form>
  );
}

type TeamOf = Extract<BulkAction, { kind: "team" }>["teamOf"];

/** One team for all, or the one that a tag of each names. */
function TeamChoice(props: { onChange: (teamOf: TeamOf) => void }): JSX.Element {
  const [from, setFrom] = createSignal<"one" | "tag">("one");
  const [teamId, setTeamId] = createSignal<number | null>(null);
  const [prefix, setPrefix] = createSignal("");
  const [creates, setCreates] = createSignal(false);
  createEffect(() => {
    const [one, find, start] = [teamId(), teamFinder(creates()), prefix()];
    props.onChange(from() === "one" ? async () => one : (tags) => find(tagValues(tags, start)));
  });
  return (
    <>
      <SegmentedControl
        label="Which team"
        options={[
          { value: "one", label: "One team" },
          { value: "tag", label: "From a tag" },
        ]}
        value={from()}
        onChange={setFrom}
      />
      <Show when={from() === "tag"} fallback={<TeamField value={null} onChange={setTeamId} />}>
        <InputField
          label="Tags that begin with"
          hint="Such as team: for team:ml, which names ml. Empty: the whole tag."
          value={prefix()}
          onText={setPrefix}
        />
        <Choice label="Create a team that is not there" value={creates()} onChange={setCreates} />
      </Show>
    </>
  );
}
