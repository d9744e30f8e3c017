// What pages are built of: the page (here), panels, dialogs, controls, tables and long lists. It knows no feature.
//
// It keeps true: data that were loaded stay on the screen after a failed refresh, with a notice that says why, and of
// when they are. What loads has its space already (`skeleton.tsx`). Of a long list the first rows are shown, and more
// on scrolling.

import { A } from "@solidjs/router";
import { createEffect, Index, type JSX, Show } from "solid-js";
import { causeOf } from "../client.ts";
import { timeAgo } from "../lib/format.ts";
import { now, toServerTime } from "../lib/server-clock.ts";
import { refreshPanels, usePanels } from "../queries.ts";
import { Button, IconButton } from "./controls.tsx";
import { Icon } from "./icon.tsx";
import { StatesLine } from "./states-line.tsx";

/** The part of a query that a page needs. */
interface PageQuery {
  readonly dataUpdatedAt: number;
  readonly isError: boolean;
  readonly error: Error | null;
  refetch(): unknown;
}

/** What a query feeds. */
export interface PageSource {
  /** The name in the panel's title. */
  name: string;
  query: PageQuery;
  /** The time of the data on the screen, server time; by default, of the query's last good response. */
  fetchedAt?: number | undefined;
  /** Refreshes less often, or in another way. A page with only such sources has no age. */
  slow?: boolean;
}

interface PageProps {
  title: string;
  /** What the page reports if it fails. Other panels do so themselves. */
  sources: readonly PageSource[];
  actions?: JSX.Element;
  /** The chapter of the handbook, and the heading in it, that its "?" opens. */
  help?: string;
  children: JSX.Element;
}

/** A page with its heading, its freshness and, after a failed query, a notice. */
export function Page(props: PageProps): JSX.Element {
  createEffect(() => void (document.title = `${props.title} · Tollgate`));
  const refetch = (): void => {
    for (const { query } of props.sources) query.refetch();
  };
  return (
    <main id="main" tabindex="-1">
      <StatesLine />
      <header class="page-head">
        <h1>{props.title}</h1>
        <Show when={props.help}>
          {(help) => (
            <A class="icon-button" href={`/help/handbook/${help()}`} aria-label="Handbook" title="Handbook: this page">
              <Icon name="help" />
            </A>
          )}
        </Show>
        <Show when={props.sources.some(({ slow }) => slow !== true)}>
          <Freshness />
        </Show>
        <div class="actions">{props.actions}</div>
      </header>
      <FailureNotice failures={groupFailures(props.sources)} onRetry={refetch} />
      {props.children}
    </main>
  );
}

/** Names what could not be loaded and why, a line for each cause, and the time of the data that is shown instead. */
function FailureNotice(props: { failures: readonly Failure[]; onRetry: () => void }): JSX.Element {
  return (
    <Show when={props.failures.length > 0}>
      <div class="notice" role="alert" data-tone="error">
        <Icon name="warning" />
        <div>
          <Index each={props.failures}>
            {(failure) => (
              <p>
                {failure().names.join(", ")} could not be loaded: {failure().cause}.{" "}
                <span aria-live="off">
                  {failure().fetchedAt === 0 ? "" : `Showing data loaded ${timeAgo(now() - failure().fetchedAt)}.`}
                </span>
              </p>
            )}
          </Index>
        </div>
        <Button onClick={() => props.onRetry()}>Try again</Button>
      </div>
    </Show>
  );
}

interface Failure {
  names: string[];
  cause: string;
  /** The oldest data that is shown instead, server time; 0 if there is none. */
  fetchedAt: number;
}

function groupFailures(sources: readonly PageSource[]): Failure[] {
  const byCause = new Map<string, Failure>();
  for (const source of sources) {
    if (!source.query.isError) continue;
    const cause = causeOf(source.query.error);
    const fetchedAt = source.fetchedAt ?? updatedAt(source.query);
    const failure = byCause.get(cause);
    if (failure === undefined) {
      byCause.set(cause, { names: [source.name], cause, fetchedAt });
      continue;
    }
    if (!failure.names.includes(source.name)) failure.names.push(source.name);
    if (fetchedAt > 0) failure.fetchedAt = Math.min(failure.fetchedAt || fetchedAt, fetchedAt);
  }
  return [...byCause.values()];
}

/** Server time; 0 before the first response. */
const updatedAt = ({ dataUpdatedAt }: PageQuery): number => (dataUpdatedAt === 0 ? 0 : toServerTime(dataUpdatedAt));

/** The age of the page's oldest panel. */
function Freshness(): JSX.Element {
  const { oldest, isFetching } = usePanels();
  return (
    <div class="freshness">
      <IconButton icon="refresh" label="Refresh" tone={isFetching() && "busy"} onClick={refreshPanels} />
      <Show when={oldest()}>{(at) => <span>Updated {timeAgo(now() - toServerTime(at()))}</span>}</Show>
    </div>
  );
}
