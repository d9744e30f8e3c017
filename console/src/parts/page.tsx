import { createEffect, createUniqueId, type JSX, Show } from "solid-js";
import { timeAgo } from "../data/format.ts";
import { now, toServerTime } from "../data/server-clock.ts";
import { Icon } from "./icon.tsx";

/** What a page needs to know of the queries it shows. */
export interface PageQuery {
  readonly dataUpdatedAt: number;
  readonly isFetching: boolean;
  readonly isError: boolean;
  readonly error: Error | null;
  refetch(): unknown;
}

interface PageProps {
  title: string;
  /** The oldest of them is how fresh the page is. */
  queries: readonly PageQuery[];
  /** What else the page loads, and less often: it may fail like the others, but its age says little. */
  slowQueries?: readonly PageQuery[];
  actions?: JSX.Element;
  children: JSX.Element;
}

/** A heading that never waits, how fresh the page is, and a bar where something did not load; what had loaded stays. */
export function Page(props: PageProps): JSX.Element {
  createEffect(() => void (document.title = `${props.title} · Tollgate`));
  const all = (): readonly PageQuery[] => [...props.queries, ...(props.slowQueries ?? [])];
  const failed = (): PageQuery | undefined => all().find((query) => query.isError);
  const refetch = (): void => {
    for (const query of all()) query.refetch();
  };
  return (
    <main id="main" tabindex="-1">
      <header class="page-head">
        <h1>{props.title}</h1>
        <Show when={props.queries.length > 0}>
          <Freshness queries={props.queries} onRefresh={refetch} />
        </Show>
        <div class="actions">{props.actions}</div>
      </header>
      <Show when={failed()}>
        {(query) => (
          <div class="notice" role="alert" data-tone="error">
            <Icon name="warning" />
            <p>
              {query().error?.message}.{" "}
              <span aria-live="off">
                {query().dataUpdatedAt > 0 ? `Showing what was loaded ${sinceLoaded(query())}.` : ""}
              </span>
            </p>
            <button class="button" type="button" onClick={refetch}>
              Try again
            </button>
          </div>
        )}
      </Show>
      {props.children}
    </main>
  );
}

/** As fresh as the oldest of what is shown. */
function Freshness(props: { queries: readonly PageQuery[]; onRefresh: () => void }): JSX.Element {
  const oldest = (): PageQuery | undefined => props.queries.toSorted((a, b) => a.dataUpdatedAt - b.dataUpdatedAt)[0];
  const fetching = (): boolean => props.queries.some((query) => query.isFetching);
  return (
    <div class="freshness">
      <button
        class="icon-button"
        type="button"
        aria-label="Refresh"
        classList={{ busy: fetching() }}
        onClick={() => props.onRefresh()}
      >
        <Icon name="refresh" />
      </button>
      <Show when={(oldest()?.dataUpdatedAt ?? 0) > 0 && oldest()}>
        {(query) => <span>Updated {sinceLoaded(query())}</span>}
      </Show>
    </div>
  );
}

const sinceLoaded = ({ dataUpdatedAt }: PageQuery): string => timeAgo(now() - toServerTime(dataUpdatedAt));

export function Panel(props: {
  title: string;
  hint?: JSX.Element;
  actions?: JSX.Element;
  children: JSX.Element;
}): JSX.Element {
  const id = createUniqueId();
  return (
    <section class="panel" aria-labelledby={id}>
      <header class="panel-head">
        <h2 id={id}>{props.title}</h2>
        <Show when={props.hint}>
          <p class="hint">{props.hint}</p>
        </Show>
        <div class="actions">{props.actions}</div>
      </header>
      {props.children}
    </section>
  );
}

/** Nothing here yet, and what to do about it. */
export function EmptyState(props: { title: string; children?: JSX.Element }): JSX.Element {
  return (
    <div class="empty">
      <p class="empty-title">{props.title}</p>
      {props.children}
    </div>
  );
}

/** One figure with its name above and its context below. */
export function Figure(props: {
  label: string;
  /** Undefined while it loads: its room is kept. */
  value: string | undefined;
  exact?: string | undefined;
  note?: JSX.Element;
}): JSX.Element {
  return (
    <div class="figure">
      <dt>{props.label}</dt>
      <dd class="value" title={props.exact}>
        <Show when={props.value} fallback={<Skeleton />}>
          {props.value}
        </Show>
      </dd>
      <dd class="note">{props.note}</dd>
    </div>
  );
}

export const Skeleton = (): JSX.Element => <span class="skeleton" aria-hidden="true" />;

/** Rows that hold a table's room while it loads. */
export function SkeletonRows(props: { columns: number; rows?: number }): JSX.Element {
  return (
    <>
      {Array.from({ length: props.rows ?? 6 }, () => (
        <tr class="skeleton-row" aria-hidden="true">
          {Array.from({ length: props.columns }, () => (
            <td>
              <Skeleton />
            </td>
          ))}
        </tr>
      ))}
    </>
  );
}
