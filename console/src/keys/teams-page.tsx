import { A, useNavigate, useParams } from "@solidjs/router";
import { createMemo, createSignal, type JSX, Show } from "solid-js";
import { compact, count, plural } from "../lib/format.ts";
import { serverNow } from "../lib/server-clock.ts";
import { dateTimeLabel } from "../lib/time-labels.ts";
import { type Team, useKeysQuery, useTeamsQuery } from "../queries.ts";
import { ConfirmDialog } from "../ui/confirm-dialog.tsx";
import { Button } from "../ui/controls.tsx";
import { Page } from "../ui/page.tsx";
import { EmptyState, Fact, NotLoaded, Panel } from "../ui/panel.tsx";
import { SectionTabs } from "../ui/section-tabs.tsx";
import { NumberCell, numbers, Table } from "../ui/table.tsx";
import { rangeOf, useCostsQuery } from "../usage/report-queries.ts";
import { UsageOf } from "../usage/usage-of.tsx";
import { DailyTokens, shownDays } from "./key-chart.tsx";
import { isNearLimit, limitLabels, usedLimits } from "./key-limits.ts";
import { isUsable } from "./key-list.ts";
import { useSwitchKey } from "./key-mutations.ts";
import { MembersPanel, PageOfOne, UsersPanel } from "./members.tsx";
import { TeamDialog, useDeleteTeam } from "./subject-dialog.tsx";
import { UsedLimits } from "./used-limits.tsx";
import "../styles/lazy-pages.css";

const refreshMs = 15_000;

/** Which teams there are, and what is used of their limits. */
export function TeamsPage(): JSX.Element {
  const teams = useTeamsQuery(refreshMs);
  const [creates, setCreates] = createSignal(false);
  const NewTeam = (): JSX.Element => (
    <Button icon="plus" tone="primary" onClick={() => setCreates(true)}>
      New team
    </Button>
  );
  return (
    <Page
      title="Teams"
      help="keys-and-limits#teams-limits-that-keys-share"
      sources={[{ name: "Teams", query: teams }]}
      actions={<NewTeam />}
    >
      <SectionTabs section="keys" label="API keys" />
      <section class="panel" aria-label="Teams">
        <Table
          caption="Teams"
          heads={["Name", "Limit with the least left", ...numbers("Used", "Keys", "Refused today")]}
          query={teams}
          rows={teams.data}
          empty={
            <EmptyState title="No teams yet">
              <p>The limits of a team hold for all of its keys together, beside those of each key.</p>
              <NewTeam />
            </EmptyState>
          }
        >
          {(team) => <TeamRow team={team} />}
        </Table>
      </section>
      <Show when={creates()}>
        <TeamDialog onClose={() => setCreates(false)} />
      </Show>
    </Page>
  );
}

function TeamRow(props: { team: Team }): JSX.Element {
  const tightest = () => usedLimits(props.team).toSorted((a, b) => b.used / b.limit - a.used / a.limit)[0];
  return (
    <tr>
      <th scope="row" class="cut" title={props.team.name}>
        <A href={`/keys/teams/${props.team.id}`}>
          <bdi>{props.team.name}</bdi>
        </A>
      </th>
      <Show
        when={tightest()}
        fallback={
          <>
            <td data-label="Limit">
              <span class="faint">None</span>
            </td>
            <td class="number" data-label="Used">
              –
            </td>
          </>
        }
      >
        {(limit) => (
          <>
            <td data-label="Limit">{limitLabels[limit().name]}</td>
            <td class="number" data-label="Used" title={`${count(limit().used)} of ${count(limit().limit)}`}>
              <Show when={isNearLimit(props.team)}>
                <span class="badge" data-tone={limit().used >= limit().limit ? "bad" : "warn"}>
                  {limit().used >= limit().limit ? "At its limit" : "Near it"}
                </span>{" "}
              </Show>
              {compact(limit().used)} of {compact(limit().limit)}
            </td>
          </>
        )}
      </Show>
      <NumberCell label="Keys" value={props.team.key_count} />
      <NumberCell label="Refused today" value={props.team.refused_today} />
    </tr>
  );
}

/** One team: its limits, its keys and its usage. */
export function TeamPage(): JSX.Element {
  const parameters = useParams<{ id: string }>();
  const teams = useTeamsQuery(refreshMs);
  const team = (): Team | undefined => teams.data?.find(({ id }) => String(id) === parameters.id);
  const [editing, setEditing] = createSignal(false);
  return (
    <Page
      title={team()?.name ?? (teams.data === undefined ? "Team" : `Team ${parameters.id}`)}
      help="keys-and-limits#teams-limits-that-keys-share"
      sources={[{ name: "Teams", query: teams }]}
      actions={<Show when={team()}>{(known) => <TeamActions team={known()} />}</Show>}
    >
      <PageOfOne
        noun="team"
        query={teams}
        isThere={team() !== undefined}
        all={{ href: "/keys/teams", title: "All teams" }}
      >
        <Show when={team()}>
          {(known) => (
            <>
              <TeamDetails team={known()} onEdit={() => setEditing(true)} />
              <TeamKeys team={known()} />
              <UsersPanel teamId={known().id} />
              <TeamChart teamId={known().id} />
              <UsageOf filter={{ team: String(known().id) }} />
              <Show when={editing()}>
                <TeamDialog team={known()} onClose={() => setEditing(false)} />
              </Show>
            </>
          )}
        </Show>
      </PageOfOne>
    </Page>
  );
}

function TeamActions(props: { team: Team }): JSX.Element {
  const deleteTeam = useDeleteTeam();
  const navigate = useNavigate();
  const [deleting, setDeleting] = createSignal(false);
  return (
    <>
      <A class="button" href="/keys/teams">
        All teams
      </A>
      <A class="button" href={`/requests?team=${props.team.id}`}>
        Requests
      </A>
      <Button icon="trash" onClick={() => setDeleting(true)}>
        Delete
      </Button>
      <Show when={deleting()}>
        <ConfirmDialog
          title={`Delete “${props.team.name}”?`}
          action="Delete team"
          onConfirm={() => {
            deleteTeam.mutate(props.team);
            navigate("/keys/teams");
          }}
          onClose={() => setDeleting(false)}
        >
          <p>
            {plural(props.team.key_count, "key stays", "keys stay")}, without a team: only their own limits hold from
            then on. What the team used stays in the usage, under its last name.
          </p>
        </ConfirmDialog>
      </Show>
    </>
  );
}

function TeamDetails(props: { team: Team; onEdit: () => void }): JSX.Element {
  return (
    <div class="key-details">
      <Panel
        title="Limits"
        hint="What all of its keys use now"
        actions={
          <Button aria-label="Edit the team" onClick={() => props.onEdit()}>
            Edit
          </Button>
        }
      >
        <Show when={usedLimits(props.team).length > 0} fallback={<EmptyState title="This team has no limits" />}>
          <div class="panel-body">
            <UsedLimits key={props.team} />
            <Show when={props.team.refused_today > 0}>
              <p class="hint">{plural(props.team.refused_today, "request")} refused by these limits today.</p>
            </Show>
          </div>
        </Show>
      </Panel>
      <Panel title="Details">
        <dl class="facts">
          <Fact name="Created">{dateTimeLabel(Date.parse(props.team.created_at))}</Fact>
          <Fact name="Tags">{props.team.tags.join(", ") || "–"}</Fact>
          <Fact name="Note">{props.team.note ?? "–"}</Fact>
        </dl>
      </Panel>
    </div>
  );
}

function TeamKeys(props: { team: Team }): JSX.Element {
  const keys = useKeysQuery();
  const switchKey = useSwitchKey();
  const members = createMemo(() => keys.data?.filter(({ team_id: teamId }) => teamId === props.team.id));
  return (
    <MembersPanel
      title="Keys"
      by="key"
      query={keys}
      members={members()}
      teamId={props.team.id}
      lastUsedAt={(key) => key.last_used_at}
      isUsable={(key) => isUsable(key, serverNow())}
      href={(key) => `/keys/${key.id}`}
      onSwitch={(key, isActive) => switchKey.mutate({ key, isActive })}
      empty={
        <EmptyState title="No key is in this team">
          <p>Choose the team in the dialog of a key’s limits.</p>
          <A class="button" href="/keys">
            API keys
          </A>
        </EmptyState>
      }
    />
  );
}

function TeamChart(props: { teamId: number }): JSX.Element {
  const costs = useCostsQuery(() => ({
    range: rangeOf(`${shownDays}d`),
    by: "day",
    filter: { team: String(props.teamId) },
  }));
  return (
    <Panel title="Tokens" query={costs} hint="Input and output, by day in Seoul time (KST, UTC+9)">
      <Show when={costs.data !== undefined || !costs.isError} fallback={<NotLoaded query={costs} />}>
        <DailyTokens
          days={costs.data?.rows ?? []}
          now={costs.data?.fetchedAt ?? serverNow()}
          whose="team"
          loaded={costs.data !== undefined}
        />
      </Show>
    </Panel>
  );
}
