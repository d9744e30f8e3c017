import { createSignal, For, type JSX, Match, onMount, Show, Switch } from "solid-js";
import { now, serverNow } from "../lib/server-clock.ts";
import { dayMs } from "../lib/seoul-time.ts";
import { dateTimeLabel } from "../lib/time-labels.ts";
import { Button, TextField } from "../ui/controls.tsx";
import { CopyLine } from "../ui/copy-button.tsx";
import { ConfirmDialog } from "../ui/confirm-dialog.tsx";
import { Dialog, FormEnd } from "../ui/dialog.tsx";
import { EmptyState, NotLoaded, Panel } from "../ui/panel.tsx";
import { RelativeTime, RelativeTimeOrNever } from "../ui/relative-time.tsx";
import { SkeletonRows } from "../ui/skeleton.tsx";
import { type ApiToken, useCreateToken, useDeleteToken, useTokensQuery } from "./queries.ts";

/** The tokens with which programs use the admin API. */
export function TokensPanel(): JSX.Element {
  const tokens = useTokensQuery();
  const [creates, setCreates] = createSignal(false);
  const [asked, setAsked] = createSignal<ApiToken>();
  return (
    <Panel
      title="API tokens"
      query={tokens}
      hint="For programs that use the admin API"
      actions={<Button onClick={() => setCreates(true)}>New token</Button>}
    >
      <Switch fallback={<TokenTable tokens={tokens.data} onDelete={setAsked} />}>
        <Match when={tokens.data === undefined && tokens.isError}>
          <NotLoaded query={tokens} />
        </Match>
        <Match when={tokens.data?.length === 0}>
          <EmptyState title="No API tokens yet">
            <p>A script or a pipeline uses one in place of your password.</p>
          </EmptyState>
        </Match>
      </Switch>
      <Show when={creates()}>
        <NewTokenDialog onClose={() => setCreates(false)} />
      </Show>
      <Show when={asked()} keyed>
        {(token) => <DeleteTokenDialog token={token} onClose={() => setAsked(undefined)} />}
      </Show>
    </Panel>
  );
}

/** @param props.tokens undefined while they load */
const TokenTable = (props: { tokens: ApiToken[] | undefined; onDelete: (token: ApiToken) => void }): JSX.Element => (
  <div class="table-scroll">
    <table class="cards-on-phone tokens">
      <caption class="visually-hidden">API tokens</caption>
      <thead>
        <tr>
          <For each={["Name", "Token", "Role", "Last used", "Expires"]}>{(label) => <th scope="col">{label}</th>}</For>
          <th scope="col">
            <span class="visually-hidden">Actions</span>
          </th>
        </tr>
      </thead>
      <tbody>
        <Show when={props.tokens} fallback={<SkeletonRows columns={6} rows={2} />}>
          {(tokens) => <For each={tokens()}>{(one) => <TokenRow token={one} onDelete={props.onDelete} />}</For>}
        </Show>
      </tbody>
    </table>
  </div>
);

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

const lifetimes = [
  { days: 30, label: "In 30 days" },
  { days: 90, label: "In 90 days" },
  { days: 365, label: "In a year" },
  { days: undefined, label: "Never" },
];

/** A form, then the token, which is shown only once: then only the user closes it. */
function NewTokenDialog(props: { onClose: () => void }): JSX.Element {
  const create = useCreateToken();
  const [isSaved, setSaved] = createSignal(false);
  let name: HTMLInputElement | undefined;
  let role: HTMLSelectElement | undefined;
  let expires: HTMLSelectElement | undefined;
  let lead: HTMLParagraphElement | undefined;
  onMount(() => name?.focus());
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const days = lifetimes[Number(expires?.value)]?.days;
    create.mutate(
      {
        name: name?.value ?? "",
        role: role?.value === "admin" ? "admin" : "viewer",
        expires_at: days === undefined ? null : new Date(serverNow() + days * dayMs).toISOString(),
      },
      { onSuccess: () => lead?.focus(), onError: () => name?.focus() },
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
            <TextField label="Name" hint="The program that uses it. The record of changes has it.">
              {(ids) => (
                <input {...ids} ref={name} required maxlength="240" autocomplete="off" placeholder="e.g. deployment" />
              )}
            </TextField>
            <TextField
              label="Role"
              hint="A viewer reads all but secrets. An admin also changes keys, prices and backends, and ends requests."
            >
              {(ids) => (
                <select {...ids} ref={role}>
                  <option value="viewer">viewer</option>
                  <option value="admin">admin</option>
                </select>
              )}
            </TextField>
            <TextField label="Expires" hint="From then on its requests are refused.">
              {(ids) => (
                <select {...ids} ref={expires}>
                  <For each={lifetimes}>
                    {({ days, label }, index) => (
                      <option value={index()} selected={days === 90}>
                        {label}
                      </option>
                    )}
                  </For>
                </select>
              )}
            </TextField>
            <FormEnd error={create.error} action="Create token" isPending={create.isPending} onCancel={props.onClose} />
          </form>
        }
      >
        {(created) => (
          <>
            <p ref={lead} tabindex="-1" class="lead">
              Copy the token now. Tollgate shows it only once; later it shows only the first characters.
            </p>
            <CopyLine text={created().token} what="the token" primary onCopied={() => setSaved(true)} />
            <div class="dialog-actions">
              <Button tone={isSaved() && "primary"} onClick={() => props.onClose()}>
                {isSaved() ? "Done" : "I have saved it"}
              </Button>
            </div>
          </>
        )}
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
