import { useQueryClient } from "@tanstack/solid-query";
import { createMemo, createSignal, For, type JSX, onMount, Show } from "solid-js";
import { causeOf, forEachInTurn } from "../client.ts";
import { downloadCsv } from "../lib/csv.ts";
import { count, plural } from "../lib/format.ts";
import { type Key, useKeysQuery } from "../queries.ts";
import { TextField } from "../ui/controls.tsx";
import { Dialog, FormEnd } from "../ui/dialog.tsx";
import { Icon } from "../ui/icon.tsx";
import { parseNames, secretCsv } from "./key-import.ts";
import { PathsField } from "./key-fields.tsx";
import { createKey, type KeyFields } from "./key-mutations.ts";
import { KeyFailures, KeyNames } from "./key-names.tsx";
import { PolicyNote } from "./key-policy.tsx";
import { SecretActions } from "./key-secret.tsx";
import { closeNewKeyDialog, newKeyDialog, setNewKeyDialog } from "./new-key.ts";

/** Creates a key for each name of a list, then shows their secrets once. */
export function ImportKeysDialog(): JSX.Element {
  const { imported, create } = useKeyImport();
  return (
    <Dialog title="Import API keys" persistent={newKeyDialog() !== "form"} onClose={closeNewKeyDialog}>
      <Show when={imported()} fallback={<ImportForm onCreate={create} />}>
        {(result) => <ImportResult result={result()} />}
      </Show>
    </Dialog>
  );
}

function ImportForm(props: { onCreate: KeyCreator }): JSX.Element {
  const keys = useKeysQuery();
  const [text, setText] = createSignal("");
  const [fields, setFields] = createSignal<KeyFields>({});
  const parsed = createMemo(() => parseNames(text()));
  const existing = (): string[] => {
    const known = new Set(keys.data?.map(({ name }) => name));
    return parsed().names.filter((name) => known.has(name));
  };
  let field: HTMLTextAreaElement | undefined;
  onMount(() => field?.focus());
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    props.onCreate(parsed().names, fields());
  };
  const readFile = async (file: File | undefined): Promise<void> => void setText((await file?.text()) ?? "");
  return (
    <form onSubmit={submit}>
      <TextField label="Names" hint="One a line, or a CSV whose first column has them. Each gets a random key.">
        {(ids) => (
          <textarea
            {...ids}
            ref={field}
            rows="5"
            spellcheck={false}
            value={text()}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        )}
      </TextField>
      <label class="field">
        <span>Or a file</span>
        <input
          type="file"
          accept=".csv,.txt,text/csv,text/plain"
          onChange={(event) => void readFile(event.currentTarget.files?.[0])}
        />
      </label>
      <PathsField value={null} onChange={setFields} />
      <PolicyNote />
      <div role="status">
        <Show when={parsed().problem}>{(problem) => <p class="form-error">{problem()}.</p>}</Show>
        <Show when={parsed().problem === undefined && parsed().names.length > 0}>
          <p>
            {plural(parsed().names.length, "key")} will be created: <KeyNames names={parsed().names} />.
          </p>
        </Show>
        <Show when={parsed().repeated.length > 0}>
          <p>
            {parsed().repeated.length === 1 ? "This name is" : "These names are"} there more than once, and one key will
            be created for it: <KeyNames names={parsed().repeated} />.
          </p>
        </Show>
        <Show when={existing().length > 0}>
          <p>
            {existing().length === 1 ? "A key of this name exists" : "Keys of these names exist"} already, and another
            one will be created: <KeyNames names={existing()} />.
          </p>
        </Show>
      </div>
      <FormEnd
        action={parsed().names.length === 0 ? "Create keys" : `Create ${plural(parsed().names.length, "key")}`}
        disabled={parsed().names.length === 0 || parsed().problem !== undefined}
        onCancel={closeNewKeyDialog}
      />
    </form>
  );
}

function ImportResult(props: { result: KeyImport }): JSX.Element {
  const isDone = (): boolean => props.result.keys.length + props.result.failures.length === props.result.total;
  const save = (): void => {
    downloadCsv("tollgate-new-keys.csv", secretCsv(props.result.keys));
    setNewKeyDialog("saved");
  };
  let lead: HTMLParagraphElement | undefined;
  onMount(() => lead?.focus());
  return (
    <>
      <p ref={lead} tabindex="-1" class="lead" role="status">
        {count(props.result.keys.length)} of {plural(props.result.total, "key")} created.
        <Show when={isDone() && props.result.keys.length > 0}>
          {" "}
          Save them now. Tollgate shows them only once; later it shows only the first and last characters.
        </Show>
      </p>
      <KeyFailures failures={props.result.failures} />
      <Show when={isDone()} fallback={<progress value={props.result.keys.length} max={props.result.total} />}>
        <Show when={props.result.keys.length > 0}>
          <div class="new-keys">
            <table>
              <caption class="visually-hidden">New keys</caption>
              <thead>
                <tr>
                  <th scope="col">Name</th>
                  <th scope="col">Key</th>
                </tr>
              </thead>
              <tbody>
                <For each={props.result.keys}>
                  {({ name, key }) => (
                    <tr>
                      <th scope="row">{name}</th>
                      <td>
                        <code>{key}</code>
                      </td>
                    </tr>
                  )}
                </For>
              </tbody>
            </table>
          </div>
          <button class="button primary" type="button" onClick={save}>
            <Icon name="download" />
            Download CSV
          </button>
        </Show>
        <SecretActions several onDone={closeNewKeyDialog} />
      </Show>
    </>
  );
}

interface KeyImport {
  total: number;
  /** With their secrets. */
  keys: readonly Key[];
  failures: readonly { name: string; cause: string }[];
}

/** @param fields that each key gets */
type KeyCreator = (names: readonly string[], fields: KeyFields) => void;

/** Creates a key for each name. The dialog guards their secrets from the first request on. */
function useKeyImport(): { imported: () => KeyImport | undefined; create: KeyCreator } {
  const queries = useQueryClient();
  const [imported, setImported] = createSignal<KeyImport>();
  const update = (change: (before: KeyImport) => Partial<KeyImport>): void =>
    void setImported((before) => before && { ...before, ...change(before) });

  async function create(...[names, fields]: Parameters<KeyCreator>): Promise<void> {
    setNewKeyDialog("secret");
    setImported({ total: names.length, keys: [], failures: [] });
    await forEachInTurn(
      names,
      async (name) => {
        const key = await createKey({ name, ...fields });
        update(({ keys }) => ({ keys: [...keys, key] }));
      },
      (name, error) => {
        if (error !== undefined)
          update(({ failures }) => ({ failures: [...failures, { name, cause: causeOf(error) }] }));
      },
    );
    // Without a secret, nothing is lost.
    if (imported()?.keys.length === 0) setNewKeyDialog("saved");
    await queries.invalidateQueries({ queryKey: ["keys"] });
  }

  return { imported, create: (...args) => void create(...args) };
}
