import { useQueryClient } from "@tanstack/solid-query";
import { type Accessor, createMemo, createSignal, For, type JSX, onMount, Show } from "solid-js";
import { api, causeOf, forEachInTurn, responseBody } from "../client.ts";
import { downloadCsv } from "../lib/csv.ts";
import { count, plural } from "../lib/format.ts";
import { type Key, type User, useKeysQuery, useTeamsQuery } from "../queries.ts";
import { Button, Choice, LabelledInput, TextField } from "../ui/controls.tsx";
import { SavedButton } from "../ui/copy-button.tsx";
import { Dialog, FormEnd } from "../ui/dialog.tsx";
import { type BulkReport, type Noun, teamFinder } from "./key-bulk.ts";
import { type ImportedRow, parseImport, secretCsv } from "./key-import.ts";
import { PathsField } from "./key-fields.tsx";
import { createKey, type KeyFields, refresh } from "./key-mutations.ts";
import { KeyFailures, KeyNames } from "./key-names.tsx";
import { PolicyNote } from "./key-policy.tsx";
import { closeNewKeyDialog, newKeyDialog, setNewKeyDialog } from "./new-key.ts";

/** Creates a key for each name of a list, then shows their secrets once. */
export function ImportKeysDialog(): JSX.Element {
  const keys = useKeysQuery();
  const known = createMemo(() => new Set(keys.data?.map(({ name }) => name)));
  let fields: KeyFields = {};
  const { imported, run } = useImport("key", ({ id }, more) => createKey({ ...fields, ...more, name: id }));
  const create = async (rows: readonly ImportedRow[], createsTeams: boolean): Promise<void> => {
    // From the first request on, there are secrets to guard.
    setNewKeyDialog("secret");
    // Without one, nothing is lost.
    if ((await run(rows, createsTeams)) === 0) setNewKeyDialog("saved");
  };
  return (
    <Dialog title="Import API keys" persistent={newKeyDialog() !== "form"} onClose={closeNewKeyDialog}>
      <Show
        when={imported()}
        fallback={
          <ImportForm
            noun="key"
            idColumn="name"
            label="Names"
            hint="One a line, or a CSV with columns such as name, team, tokens_per_day. Each gets a random key."
            isKnown={(name) => known().has(name)}
            known="A key of such a name exists already, and another one will be created:"
            onImport={(rows, createsTeams) => void create(rows, createsTeams)}
            onClose={closeNewKeyDialog}
          >
            <PathsField value={null} onChange={(changed) => (fields = changed)} />
            <PolicyNote />
          </ImportForm>
        }
      >
        {(result) => <ImportedKeys result={result()} />}
      </Show>
    </Dialog>
  );
}

/** Creates users of a key before their first request, and changes those that it has. */
export function ImportUsersDialog(props: { keyId: number; users: readonly User[]; onClose: () => void }): JSX.Element {
  const known = createMemo(() => new Map(props.users.map((user) => [user.external, user.id])));
  const { imported, run } = useImport("user", ({ id: external }, fields): Promise<User> => {
    const id = known().get(external);
    if (id !== undefined) return responseBody(api.users({ id }).patch(fields));
    return responseBody(api.users.post({ ...fields, external, key_id: props.keyId }));
  });
  return (
    <Dialog title="Import users" onClose={() => props.onClose()}>
      <Show
        when={imported()}
        fallback={
          <ImportForm
            noun="user"
            idColumn="external"
            label="Users"
            hint="A CSV with columns such as external, name, team, tokens_per_day. An empty cell changes nothing."
            isKnown={(external) => known().has(external)}
            known="Those that the key has already will be changed:"
            onImport={(rows, createsTeams) => void run(rows, createsTeams)}
            onClose={props.onClose}
          />
        }
      >
        {(result) => (
          <>
            <ImportHead noun="user" result={result()} />
            <div class="dialog-actions">
              <Button tone="primary" onClick={() => props.onClose()}>
                Done
              </Button>
            </div>
          </>
        )}
      </Show>
    </Dialog>
  );
}

interface ImportFormProps {
  noun: Noun;
  idColumn: "name" | "external";
  label: string;
  hint: string;
  isKnown: (id: string) => boolean;
  /** What is said of those. */
  known: string;
  /** @param createsTeams whether teams are made that are not there */
  onImport: (rows: readonly ImportedRow[], createsTeams: boolean) => void;
  onClose: () => void;
  children?: JSX.Element;
}

function ImportForm(props: ImportFormProps): JSX.Element {
  const teams = useTeamsQuery();
  const [text, setText] = createSignal("");
  const [createsTeams, setCreatesTeams] = createSignal(false);
  const parsed = createMemo(() => parseImport(text(), props.idColumn));
  const ids = (): string[] => parsed().rows.map(({ id }) => id);
  const newTeams = (): string[] => {
    const named = new Set(parsed().rows.flatMap(({ fields: { team } }) => team ?? []));
    return [...named.difference(new Set(teams.data?.map(({ name }) => name)))];
  };
  const action = (): string =>
    `${props.noun === "key" ? "Create" : "Save"} ${ids().length === 0 ? `${props.noun}s` : plural(ids().length, props.noun)}`;
  let field: HTMLTextAreaElement | undefined;
  onMount(() => field?.focus());
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    props.onImport(parsed().rows, createsTeams());
  };
  const readFile = async (file: File | undefined): Promise<void> => void setText((await file?.text()) ?? "");
  return (
    <form onSubmit={submit}>
      <TextField label={props.label} hint={props.hint}>
        {(attributes) => (
          <textarea
            {...attributes}
            ref={field}
            rows="5"
            spellcheck={false}
            value={text()}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        )}
      </TextField>
      <LabelledInput
        label="Or a file"
        class="field"
        type="file"
        accept=".csv,.txt,text/csv,text/plain"
        onChange={(event) => void readFile(event.currentTarget.files?.[0])}
      />
      {props.children}
      <div role="status">
        <Show when={parsed().problem}>{(problem) => <p class="form-error">{problem()}.</p>}</Show>
        <Show when={parsed().problem === undefined}>
          <Names
            text={`${plural(ids().length, props.noun)} will be ${props.noun === "key" ? "created" : "saved"}:`}
            names={ids()}
          />
        </Show>
        <Names text="There more than once; only the first line counts:" names={parsed().repeated} />
        <Names text={props.known} names={ids().filter(props.isKnown)} />
        <Names text="These columns are not read:" names={parsed().unread} />
        <Names text="No team is called" names={newTeams()} />
      </div>
      <Show when={newTeams().length > 0}>
        <Choice label="Create the teams that are not there" value={createsTeams()} onChange={setCreatesTeams} />
      </Show>
      <FormEnd
        action={action()}
        disabled={ids().length === 0 || parsed().problem !== undefined}
        onCancel={props.onClose}
      />
    </form>
  );
}

/** A sentence that ends with some names, if there are any. */
const Names = (props: { text: string; names: readonly string[] }): JSX.Element => (
  <Show when={props.names.length > 0}>
    <p>
      {props.text} <KeyNames names={props.names} />.
    </p>
  </Show>
);

/** How many were imported so far, and which failed. */
const ImportHead = (props: { noun: Noun; result: Import<unknown>; children?: JSX.Element }): JSX.Element => {
  let lead: HTMLParagraphElement | undefined;
  onMount(() => lead?.focus());
  return (
    <>
      <p ref={lead} tabindex="-1" class="lead" role="status">
        {count(props.result.saved.length)} of {plural(props.result.total, props.noun)}{" "}
        {props.noun === "key" ? "created" : "saved"}.{props.children}
      </p>
      <KeyFailures noun={props.noun} failures={props.result.failures} />
      <Show when={!isDone(props.result)}>
        <progress aria-label="Progress" value={props.result.saved.length} max={props.result.total} />
      </Show>
    </>
  );
};

const isDone = ({ total, saved, failures }: Import<unknown>): boolean => saved.length + failures.length === total;

function ImportedKeys(props: { result: Import<Key> }): JSX.Element {
  const hasSecrets = (): boolean => isDone(props.result) && props.result.saved.length > 0;
  const save = (): void => {
    downloadCsv("tollgate-new-keys.csv", secretCsv(props.result.saved));
    setNewKeyDialog("saved");
  };
  return (
    <>
      <ImportHead noun="key" result={props.result}>
        <Show when={hasSecrets()}>
          {" "}
          Save them now. Tollgate shows them only once; later it shows only the first and last characters.
        </Show>
      </ImportHead>
      <Show when={isDone(props.result)}>
        <Show when={hasSecrets()}>
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
                <For each={props.result.saved}>
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
          <Button icon="download" tone="primary" onClick={save}>
            Download CSV
          </Button>
        </Show>
        <SavedButton several isSaved={newKeyDialog() === "saved"} onDone={closeNewKeyDialog} />
      </Show>
    </>
  );
}

interface Import<Saved> {
  total: number;
  saved: readonly Saved[];
  failures: readonly Pick<BulkReport["failures"][number], "name" | "cause">[];
}

type Fields = Omit<ImportedRow["fields"], "team">;

/** @param save gets what a line sets, with its team by id. `run` returns how many were saved */
function useImport<Saved>(
  noun: Noun,
  save: (row: ImportedRow, fields: Fields) => Promise<Saved>,
): {
  imported: Accessor<Import<Saved> | undefined>;
  run: (rows: readonly ImportedRow[], createsTeams: boolean) => Promise<number>;
} {
  const queries = useQueryClient();
  const [imported, setImported] = createSignal<Import<Saved>>();
  async function run(rows: readonly ImportedRow[], createsTeams: boolean): Promise<number> {
    let result: Import<Saved> = { total: rows.length, saved: [], failures: [] };
    const update = (changed: Partial<Import<Saved>>): void => {
      result = { ...result, ...changed };
      setImported(result);
    };
    update({});
    const findTeam = teamFinder(createsTeams);
    await forEachInTurn(
      rows,
      async (row) => {
        const { team, ...fields } = row.fields;
        const more = team === undefined ? fields : { ...fields, team_id: await findTeam([team]) };
        update({ saved: [...result.saved, await save(row, more)] });
      },
      ({ id }, error) => {
        if (error !== undefined) update({ failures: [...result.failures, { name: id, cause: causeOf(error) }] });
      },
    );
    await refresh(queries, noun);
    return result.saved.length;
  }
  return { imported, run };
}
