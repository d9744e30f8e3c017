import { A } from "@solidjs/router";
import { createSignal, For, type JSX, Show } from "solid-js";
import { count, plural } from "../lib/format.ts";
import { dateTimeLabel } from "../lib/time-labels.ts";
import { type Key, type Team, useTeamsQuery } from "../queries.ts";
import { Button } from "../ui/controls.tsx";
import { EmptyState, Fact, Panel } from "../ui/panel.tsx";
import { RelativeTimeOrNever } from "../ui/relative-time.tsx";
import { scopes, usersFromLabel } from "./key-fields.tsx";
import { KeyLimitsDialog } from "./key-limits-dialog.tsx";
import { usedLimits } from "./key-limits.ts";
import { UsedLimits } from "./used-limits.tsx";

/** What a key may take, how much of it is used, and what the key is for. */
export function KeyDetails(props: { key: Key }): JSX.Element {
  const [editing, setEditing] = createSignal(false);
  const Edit = (edit: { label: string }): JSX.Element => (
    <Button aria-label={edit.label} onClick={() => setEditing(true)}>
      Edit
    </Button>
  );
  return (
    <div class="key-details">
      <Panel title="Limits" hint="What is used now" actions={<Edit label="Edit limits" />}>
        <Show when={usedLimits(props.key).length > 0} fallback={<EmptyState title="This key has no limits" />}>
          <div class="panel-body">
            <UsedLimits key={props.key} />
            <Show when={props.key.total_estimated_tokens > 0}>
              <p class="hint">
                {count(props.key.total_estimated_tokens)} tokens were charged by an estimate, for responses without
                usage.
              </p>
            </Show>
            <Show when={props.key.refused_today > 0}>
              <p class="hint">{plural(props.key.refused_today, "request")} refused by these limits today.</p>
            </Show>
          </div>
        </Show>
      </Panel>
      <Panel title="Details" actions={<Edit label="Edit details" />}>
        <Facts key={props.key} />
      </Panel>
      <Show when={editing()}>
        <KeyLimitsDialog key={props.key} onClose={() => setEditing(false)} />
      </Show>
    </div>
  );
}

/** Responses, files and batches are their key's own. */
const allPaths = "All; keys share vector stores, threads and the like, where a backend has them";

function Facts(props: { key: Key }): JSX.Element {
  const teams = useTeamsQuery();
  const teamOf = (id: number): Team | undefined => teams.data?.find((team) => team.id === id);
  return (
    <dl class="facts">
      <Fact name="Created">{dateTimeLabel(Date.parse(props.key.created_at))}</Fact>
      <Fact name="Last used">
        <RelativeTimeOrNever at={props.key.last_used_at} />
      </Fact>
      <Fact name="Expires">
        <Show when={props.key.expires_at} fallback="Never">
          {(at) => dateTimeLabel(Date.parse(at()))}
        </Show>
      </Fact>
      <Fact name="May be used for">{scopes.find(({ value }) => value === props.key.scope)?.label}</Fact>
      <Fact name="Allowed models">{props.key.allowed_models?.join(", ") ?? "All"}</Fact>
      <Fact name="Allowed paths">{props.key.allowed_paths?.join(", ") ?? allPaths}</Fact>
      <Show when={props.key.team_id}>
        {(id) => (
          <Fact name="Team">
            <A href={`/keys/teams/${id()}`}>{teamOf(id())?.name ?? `Team ${id()}`}</A>
          </Fact>
        )}
      </Show>
      <Show when={props.key.users_from}>
        {(from) => (
          <Fact name="Users come from">
            {usersFromLabel(from())}
            {props.key.has_users_secret ? ", signed" : ""}
          </Fact>
        )}
      </Show>
      <Fact name="Owner">{props.key.owner ?? "–"}</Fact>
      <Fact name="Tags">
        <Show when={props.key.tags.length > 0} fallback="–">
          <span class="tags">
            <For each={props.key.tags}>{(tag) => <span class="tag">{tag}</span>}</For>
          </span>
        </Show>
      </Fact>
      <Fact name="Note">{props.key.note ?? "–"}</Fact>
    </dl>
  );
}
