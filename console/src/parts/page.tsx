import { createEffect, type JSX, Show } from "solid-js";
import { timeAgo } from "../data/format.ts";
import { now, toServerTime } from "../data/server-clock.ts";
import { Icon } from "./icon.tsx";

/** The part of a query that a page needs. */
export interface PageQuery {
  readonly dataUpdatedAt: number;
  readonly isFetching: boolean;
  readonly isError: boolean;
  readonly error: Error | null;
  refetch(): unknown;
}

interface PageProps {
  title: string;
  /** The page is as fresh as the oldest of these. */
  queries: readonly PageQuery[];
  /** Queries that refresh less often: the page reports their errors, but not their age. */
  slowQueries?: readonly PageQuery[];
  actions?: JSX.Element;
  children: JSX.Element;
}

/** A page with its heading, its freshness and, after a failed query, a notice. Data already loaded stays. */
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
                {query().dataUpdatedAt > 0 ? `Showing data loaded ${sinceLoaded(query())}.` : ""}
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
