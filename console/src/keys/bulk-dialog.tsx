import { createSignal, type JSX, onMount, Show } from "solid-js";
import { count, plural } from "../lib/format.ts";
import { showToast } from "../lib/toasts.ts";
import type { Key } from "../queries.ts";
import { SegmentedControl, TextField } from "../ui/controls.tsx";
import { Dialog, FormEnd } from "../ui/dialog.tsx";
import type { BulkQuestion } from "./bulk-bar.tsx";
import { EndRunningChoice } from "./delete-key-dialog.tsx";
import { PathsField } from "./key-fields.tsx";
import { type BulkAction, type BulkReport, useBulkRun } from "./key-bulk.ts";
import { listOf } from "./key-limits.ts";
import { KeyFailures, KeyNames } from "./key-names.tsx";

interface BulkDialogProps {
  keys: readonly Key[];
  question: BulkQuestion;
  /** Called with the keys for which it failed. */
  onDone: (failed: readonly Key[]) => void;
  onClose: () => void;
}

interface Words {
  title: string;
  button: string;
  past: string;
  effect: string;
}

const words: Readonly<Record<BulkQuestion, Words>> = {
  switch: {
    title: "Switch on",
    button: "Switch on",
    past: "switched on",
    effect: "Their clients are accepted from the next request on.",
  },
  "switch-off": {
    title: "Switch off",
    button: "Switch off",
    past: "switched off",
    effect: "Their clients are rejected from the next request on.",
  },
  delete: {
    title: "Delete",
    button: "Delete",
    past: "deleted",
    effect:
      "Their clients are rejected from the next request on. The keys cannot be restored, and their totals are subtracted from the sums over all keys; their rows in the usage history stay.",
  },
  paths: {
    title: "Limit the paths of",
    button: "Save",
    past: "changed",
    effect: "These take the place of the paths that each key may use now, from the next request on.",
  },
  tag: { title: "Tag", button: "Save", past: "changed", effect: "The filter finds keys by their tags." },
};

/** One question for all selected keys, then what failed. */
export function BulkDialog(props: BulkDialogProps): JSX.Element {
  const bulk = useBulkRun();
  const [report, setReport] = createSignal<BulkReport>();
  const keyCount = (): number => props.keys.length;
  const text = (): Words => words[props.question];
  const run = async (action: BulkAction): Promise<void> => {
    const result = await bulk.run(props.keys, action);
    props.onDone(result.failures.map(({ key }) => key));
    if (result.failures.length > 0) return void setReport(result);
    showToast(`${plural(keyCount(), "key was", "keys were")} ${text().past}`);
    props.onClose();
  };
  return (
    <Dialog
      title={`${text().title} ${plural(keyCount(), "key")}?`}
      persistent={bulk.progress() !== undefined}
      onClose={() => props.onClose()}
    >
      <Show
        when={report()}
        fallback={
          <Question
            {...props}
            effect={text().effect}
            button={text().button}
            progress={bulk.progress()}
            onRun={(action) => void run(action)}
          />
        }
      >
        {(result) => (
          <>
            <p>
              {count(result().done)} of {plural(keyCount(), "key was", "keys were")} {text().past}.
            </p>
            <KeyFailures failures={result().failures} />
            <div class="dialog-actions">
              <button class="button" type="button" onClick={() => props.onClose()}>
                Close
              </button>
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
  let form: HTMLFormElement | undefined;
  // Cancel, so that Enter deletes nothing; a field, if there is one to fill.
  onMount(() => (form?.querySelector<HTMLElement>("input[required]") ?? form?.querySelector("button"))?.focus());
  const asksAboutRunning = (): boolean => props.question === "delete" || props.question === "switch-off";
  const action = (): BulkAction => {
    if (props.question === "tag") return { kind: "tag", tags: tags(), adds: adds() === "add" };
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
        <KeyNames names={props.keys.map(({ name }) => name)} />.
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
        <TextField label="Tags" hint="Separated by commas. A key has at most 10.">
          {(ids) => (
            <input
              {...ids}
              required
              autocomplete="off"
              onInput={(event) => setTags(listOf(event.currentTarget.value) ?? [])}
            />
          )}
        </TextField>
      </Show>
      <Show when={props.question === "paths"}>
        <PathsField value={null} onChange={({ allowed_paths: given = null }) => setPaths(given)} />
      </Show>
      <Show when={asksAboutRunning()}>
        <EndRunningChoice label="Also end their running responses" value={endRunning()} onChange={setEndRunning} />
      </Show>
      <Show when={props.progress !== undefined}>
        <progress aria-label="Progress" value={props.progress} max={props.keys.length} />
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
