// The request log with its live tail (here), running requests, latency and failures. It knows no other feature.
//
//   tail: follows -> paused, by the button or because new rows would move what is being read -> follows
//
// It keeps true: the tail asks for what came after the last id (`request-tail.ts`), while the tab is visible; where it
// is too far behind, the log is read again. Filters are part of the URL. Removed: an event stream of the server.

import { createEffect, createMemo, createSignal, type JSX, Match, onCleanup, Show, Switch } from "solid-js";
import { downloadCsv } from "../lib/csv.ts";
import { count, plural } from "../lib/format.ts";
import { dateTimeLabel } from "../lib/time-labels.ts";
import { showToast } from "../lib/toasts.ts";
import { Button } from "../ui/controls.tsx";
import { Page } from "../ui/page.tsx";
import { EmptyState, NotLoaded } from "../ui/panel.tsx";
import { SectionTabs } from "../ui/section-tabs.tsx";
import { isOpened, type LoggedRequest, readAllRequests, useRequestQuery } from "./queries.ts";
import { GroupsPanel } from "./groups-panel.tsx";
import { requestCsv } from "./request-csv.ts";
import { RequestDrawer } from "./request-drawer.tsx";
import { RequestFilterBar } from "./request-filter-bar.tsx";
import { groupings } from "./request-groups.ts";
import { RequestTable } from "./request-table.tsx";
import { type RequestFilters, useRequestFilters } from "./use-request-filters.ts";
import { type RequestLog, useRequestLog } from "./use-request-log.ts";
import "../styles/lazy-pages.css";

/** Every request that ended in the last days, with a live tail. */
export function RequestsPage(): JSX.Element {
  const filters = useRequestFilters();
  const log = useRequestLog(filters);
  return (
    <Page
      title="Requests"
      help="watching#the-request-log"
      sources={[{ name: "Requests", query: log.query, slow: true }]}
      actions={
        <Show when={filters.grouping() === undefined}>
          <TailControl log={log} hasEnd={filters.value("until") !== ""} />
          <ExportButton filters={filters} disabled={(log.rows()?.length ?? 0) === 0} />
        </Show>
      }
    >
      <SectionTabs section="requests" label="Requests" />
      <Show when={log.limits()?.days !== 0} fallback={<LogIsOff />}>
        <RequestFilterBar filters={filters} />
        <Show when={filters.grouping()} fallback={<RequestList filters={filters} log={log} />}>
          {(by) => (
            <GroupsPanel
              title={`Requests by ${groupings[by()].label.replace(/^[A-Z](?![A-Z])/, (first) => first.toLowerCase())}`}
              query={{ ...filters.query(), ...filters.timeQuery(), by: by() }}
              href={filters.href}
              empty={<NoRequests log={log} filters={filters} />}
            />
          )}
        </Show>
      </Show>
      <OpenRequest filters={filters} rows={log.rows() ?? []} />
    </Page>
  );
}

const RequestList = (props: { filters: RequestFilters; log: RequestLog }): JSX.Element => (
  <section class="panel" aria-label="Requests" ref={(panel) => watchReading(panel, props.log.setReading)}>
    <Switch
      fallback={
        <>
          <WaitingRequests log={props.log} />
          <RequestTable rows={props.log.rows()} onOpen={props.filters.open} />
          <TableFoot log={props.log} />
        </>
      }
    >
      <Match when={props.log.rows() === undefined && props.log.query.isError}>
        <NotLoaded query={props.log.query} />
      </Match>
      <Match when={props.log.rows()?.length === 0}>
        <NoRequests log={props.log} filters={props.filters} />
      </Match>
    </Switch>
  </section>
);

/** More would take a minute and a hundred MB of a browser's memory. */
const maxExported = 50_000;

/** Downloads all requests that match the filters, not only those of the table. */
function ExportButton(props: { filters: RequestFilters; disabled: boolean }): JSX.Element {
  const [readCount, setReadCount] = createSignal<number>();
  let hasLeft = false;
  onCleanup(() => (hasLeft = true));

  async function exportCsv(): Promise<void> {
    setReadCount(0);
    try {
      for await (const { requests, more } of readAllRequests({
        ...props.filters.query(),
        ...props.filters.timeQuery(),
      })) {
        if (hasLeft) return;
        setReadCount(requests.length);
        if (more && requests.length < maxExported) continue;
        downloadCsv("requests.csv", requestCsv(requests));
        if (more) showToast(`The CSV has the last ${count(requests.length)} requests; filter by time for older ones`);
        return;
      }
    } catch (error) {
      showToast(`The CSV was not made: ${error instanceof Error ? error.message : String(error)}`, "error");
    } finally {
      setReadCount(undefined);
    }
  }

  return (
    <Button icon="download" disabled={props.disabled || readCount() !== undefined} onClick={() => void exportCsv()}>
      {readCount() === undefined ? "CSV" : `${count(readCount() ?? 0)} requests…`}
    </Button>
  );
}

/** Whether the table follows new requests, and the switch for it. */
function TailControl(props: { log: RequestLog; hasEnd: boolean }): JSX.Element {
  const isAsked = (): boolean => props.log.pause() === "asked";
  const state = (): string => {
    const pause = props.log.pause();
    if (pause !== undefined) return pause === "asked" ? "Paused" : "Paused while you read";
    return props.log.isFailing() ? "Not live; trying again" : "Live";
  };
  return (
    <Show when={!props.hasEnd && props.log.limits() !== undefined && props.log.limits()?.days !== 0}>
      <p class="status tail" data-state={state() === "Live" ? "good" : "idle"}>
        <span role="status">{state()}</span>
      </p>
      <Button onClick={() => props.log.setPaused(!isAsked())}>
        <Show when={isAsked()} fallback="Pause">
          Resume
          <Show when={props.log.waitingCount() > 0}> ({plural(props.log.waitingCount(), "new request")})</Show>
        </Show>
      </Button>
    </Show>
  );
}

/** Beside what is being read: what the pause holds back, and the way to it. */
function WaitingRequests(props: { log: RequestLog }): JSX.Element {
  return (
    <Show when={props.log.pause() === "reading" && props.log.waitingCount()}>
      {(waiting) => (
        <div class="waiting">
          <Button tone="primary" onClick={() => window.scrollTo({ top: 0 })}>
            Show {plural(waiting(), "new request")}
          </Button>
        </div>
      )}
    </Show>
  );
}

/** Reports whether the first rows are above the screen: there, new ones would push the others away. */
function watchReading(panel: HTMLElement, report: (reading: boolean) => void): void {
  const update = (): void => report(panel.getBoundingClientRect().top < 0);
  addEventListener("scroll", update, { passive: true });
  onCleanup(() => removeEventListener("scroll", update));
}

function TableFoot(props: { log: RequestLog }): JSX.Element {
  const limits = (): string => {
    const kept = props.log.limits();
    return kept === undefined ? "" : `Kept for ${plural(kept.days, "day")}, at most ${count(kept.rows)}.`;
  };
  return (
    <p class="table-foot">
      <Show when={props.log.hasMore()} fallback={props.log.rows() && "These are all. "}>
        <SearchedBack at={props.log.searchedBackTo()} />
        <button class="link" type="button" onClick={() => props.log.loadMore()}>
          {props.log.query.isFetchingNextPage ? "Loading…" : "Load older requests"}
        </button>{" "}
      </Show>
      {limits()}
    </p>
  );
}

/** A filter without an index looks at a bounded number of rows for each page. */
const SearchedBack = (props: { at: string | undefined }): JSX.Element => (
  <Show when={props.at}>{(at) => <>Searched back to {dateTimeLabel(Date.parse(at()))}. </>}</Show>
);

function NoRequests(props: { log: RequestLog; filters: RequestFilters }): JSX.Element {
  return (
    <Show
      when={props.filters.isFiltered()}
      fallback={
        <EmptyState title="Nothing in the log yet">
          <p>Each request to /v1 appears here as it ends, with its timing and tokens, but without its content.</p>
        </EmptyState>
      }
    >
      <EmptyState title="No matching requests">
        <p>
          <SearchedBack at={props.log.searchedBackTo()} />
        </p>
        <div class="actions">
          <Show when={props.log.hasMore() && props.filters.grouping() === undefined}>
            <Button tone="primary" onClick={() => props.log.loadMore()}>
              {props.log.query.isFetchingNextPage ? "Searching…" : "Search further back"}
            </Button>
          </Show>
          <Button onClick={() => props.filters.clear()}>Clear filters</Button>
        </div>
      </EmptyState>
    </Show>
  );
}

const LogIsOff = (): JSX.Element => (
  <section class="panel" aria-label="Requests">
    <EmptyState title="The request log is switched off">
      <p>
        REQUEST_LOG_DAYS is 0. With another value, Tollgate keeps one row for each request for that many days: its
        timing, tokens and result, but not its content.
      </p>
    </EmptyState>
  </section>
);

/** The request that the URL names, from the table or, after a reload, from the server. */
function OpenRequest(props: { filters: RequestFilters; rows: readonly LoggedRequest[] }): JSX.Element {
  const inTable = (): LoggedRequest | undefined => {
    const opened = props.filters.opened();
    return opened && props.rows.find((request) => isOpened(opened, request));
  };
  const found = useRequestQuery(() => (inTable() === undefined ? props.filters.opened() : undefined));
  // The table may load after the request itself: the drawer stays.
  const shown = createMemo(
    () => (props.filters.opened() === undefined ? undefined : (inTable() ?? found.data ?? undefined)),
    undefined,
    { equals: (a, b) => a?.id === b?.id },
  );
  createEffect(() => {
    if (props.filters.opened() === undefined || inTable() !== undefined || found.data !== null) return;
    showToast("This request is no longer in the log", "error");
    props.filters.open(undefined);
  });
  return (
    <Show when={shown()} keyed>
      {(request) => <RequestDrawer request={request} onClose={() => props.filters.open(undefined)} />}
    </Show>
  );
}
