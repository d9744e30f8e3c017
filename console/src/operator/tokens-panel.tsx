import { createSignal, type JSX, onMount, Show } from "solid-js";
import { now, serverNow } from "../lib/server-clock.ts";
import { dayMs } from "../lib/seoul-time.ts";
import { dateTimeLabel } from "../lib/time-labels.ts";
import { Button, InputField, Select, TextField } from "../ui/controls.tsx";
import { ShownOnce } from "../ui/copy-button.tsx";
import { ConfirmDialog } from "../ui/confirm-dialog.tsx";
import { Dialog, FormEnd } from "../ui/dialog.tsx";
import { Panel } from "../ui/panel.tsx";
import { RelativeTime, RelativeTimeOrNever } from "../ui/relative-time.tsx";
import { type ApiToken, useCreateToken, useDeleteToken, useTokensQuery } from "./queries.ts";
import { actions, Table } from "../ui/table.tsx";

/** The tokens with which programs use the admin API; nothing while there are none. */
export function TokensPanel(): JSX.Element {
  const tokens = useTokensQuery();
  const [asked, setAsked] = createSignal<ApiToken>();
  return (
    <Show when={tokens.isError || (tokens.data?.length ?? 0) > 0}>
      <Panel title="API tokens" query={tokens} hint="For programs that use the admin API">
        <Table
          caption="API tokens"
          class="tokens"
          heads={["Name", "Token", "Role", "Last used", "Expires", actions]}
          query={tokens}
          rows={tokens.data}
        >
          {(one) => <TokenRow token={one} onDelete={setAsked} />}
        </Table>
        <Show when={asked()} keyed>
          {(token) => <DeleteTokenDialog token={token} onClose={() => setAsked(undefined)} />}
        </Show>
      </Panel>
    </Show>
  );
}

export function NewTokenButton(): JSX.Element {
  const [creates, setCreates] = createSignal(false);
  return (
    <>
      <Button onClick={() => setCreates(true)}>New API token</Button>
      <Show when={creates()}>
        <NewTokenDialog onClose={() => setCreates(false)} />
      </Show>
    </>
  );
}

function TokenRow(props: { token: ApiToken; onDelete: (token: ApiToken) => void }): JSX.Element {
  const hasExpired = (at: string): boolean => Date.parse(at) <= now();
  return (
    <tr>
      <th scope="row" class="cut" title={props.token.name}>
        {props.token.name}
      </th>
      <td class="mono" data-label="Token">
        {props.token.head}…
      </td>
      <td data-label="Role">{props.token.role}</td>
      <td data-label="Last used">
        <RelativeTimeOrNever at={props.token.last_used_at} />
      </td>
      <td data-label="Expires">
        <Show when={props.token.expires_at} fallback="Never">
          {(at) => (
            <Show when={hasExpired(at())} fallback={<time datetime={at()}>{dateTimeLabel(Date.parse(at()))}</time>}>
              <span class="badge" data-tone="bad">
                Expired <RelativeTime at={Date.parse(at())} />
              </span>
            </Show>
          )}
        </Show>
      </td>
      <td class="row-actions">
        <Button aria-label={`Delete the token ${props.token.name}`} onClick={() => props.onDelete(props.token)}>
          Delete
        </Button>
      </td>
    </tr>
  );
}

/** In days. */
const lifetimes = [
  { value: "30", label: "In 30 days" },
  { value: "90", label: "In 90 days" },
  { value: "365", label: "In a year" },
  { value: "", label: "Never" },
];
const roles = [
  { value: "viewer", label: "viewer" },
  { value: "admin", label: "admin" },
] as const;

/** A form, then the token, which is shown only once: then only the user closes it. */
function NewTokenDialog(props: { onClose: () => void }): JSX.Element {
  const create = useCreateToken();
  const [role, setRole] = createSignal<"viewer" | "admin">("viewer");
  const [days, setDays] = createSignal("90");
  let name: HTMLInputElement | undefined;
  onMount(() => name?.focus());
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    create.mutate(
      {
        name: name?.value ?? "",
        role: role(),
        expires_at: days() === "" ? null : new Date(serverNow() + Number(days()) * dayMs).toISOString(),
      },
      { onError: () => name?.focus() },
    );
  };
  return (
    <Dialog
      title={create.data === undefined ? "New API token" : `Token “${create.data.name}”`}
      persistent={create.isPending || create.data !== undefined}
      onClose={() => props.onClose()}
    >
      <Show
        when={create.data}
        fallback={
          <form onSubmit={submit}>
            <InputField
              label="Name"
              hint="The program that uses it. The record of changes has it."
              ref={name}
              required
              maxlength="240"
              placeholder="e.g. deployment"
            />
            <TextField
              label="Role"
              hint="A viewer reads all but secrets. An admin also changes keys, prices and backends, and ends requests."
            >
              {(ids) => <Select {...ids} options={roles} value={role()} onChange={setRole} />}
            </TextField>
            <TextField label="Expires" hint="From then on its requests are refused.">
              {(ids) => <Select {...ids} options={lifetimes} value={days()} onChange={setDays} />}
            </TextField>
            <FormEnd error={create.error} action="Create token" isPending={create.isPending} onCancel={props.onClose} />
          </form>
        }
      >
        {(created) => <ShownOnce secret={created().token} what="the token" onDone={props.onClose} />}
      </Show>
    </Dialog>
  );
}

function DeleteTokenDialog(props: { token: ApiToken; onClose: () => void }): JSX.Element {
  const remove = useDeleteToken();
  return (
    <ConfirmDialog
      title={`Delete “${props.token.name}”?`}
      action="Delete token"
      onConfirm={() => remove.mutate(props.token)}
      onClose={() => props.onClose()}
    >
      <p>From the next request on, programs that use this token are refused. The token cannot be restored.</p>
    </ConfirmDialog>
  );
}
