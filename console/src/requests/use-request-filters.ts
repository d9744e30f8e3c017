import { createMemo } from "solid-js";
import { useUrlParameters } from "../lib/url-parameters.ts";
import { requestsHref } from "../lib/requests-href.ts";
import type { Grouping, LoggedRequest, OpenedRequest } from "./queries.ts";
import {
  filterNames as names,
  type RequestFilterName,
  type RequestFilterQuery,
  requestFilterQuery,
  type RequestParameters,
  requestTimeQuery,
} from "./request-filters.ts";
import { findGrouping } from "./request-groups.ts";

/** The filters of the request log, and the request that is open. All of them are part of the URL. */
export interface RequestFilters {
  value: (name: RequestFilterName) => string;
  set: (name: RequestFilterName, value: string) => void;
  query: () => RequestFilterQuery;
  timeQuery: () => { since?: string; until?: string };
  isFiltered: () => boolean;
  clear: () => void;
  /** Undefined: the requests are listed one by one. */
  grouping: () => Grouping | undefined;
  setGrouping: (by: string) => void;
  /** The address of the list with one more filter. */
  href: (name: RequestFilterName, value: string) => string;
  opened: () => OpenedRequest | undefined;
  open: (request: LoggedRequest | undefined) => void;
}

export function useRequestFilters(): RequestFilters {
  const [parameters, setParameters] = useUrlParameters<RequestFilterName | "group" | "open" | "row">();
  const chosen = createMemo(
    (): RequestParameters => Object.fromEntries(names.map((name) => [name, parameters[name]])),
    undefined,
    { equals: (a, b) => names.every((name) => a[name] === b[name]) },
  );
  const query = createMemo(() => requestFilterQuery(chosen()));
  const timeQuery = createMemo(() => requestTimeQuery(chosen()));
  const opened = (): OpenedRequest | undefined =>
    parameters.open === undefined
      ? undefined
      : { requestId: parameters.open, rowId: parameters.row === undefined ? undefined : Number(parameters.row) };
  return {
    value: (name) => chosen()[name] ?? "",
    set: (name, value) => setParameters({ [name]: value.trim() || undefined }, { replace: true }),
    query,
    timeQuery,
    isFiltered: () => names.some((name) => (chosen()[name] ?? "") !== ""),
    clear: () => setParameters(Object.fromEntries(names.map((name) => [name, undefined])), { replace: true }),
    grouping: () => findGrouping(parameters.group),
    setGrouping: (by) => setParameters({ group: by || undefined }, { replace: true }),
    href: (name, value) => requestsHref({ ...chosen(), [name]: value }),
    opened,
    open: (request) =>
      setParameters(
        { open: request?.request_id, row: request && String(request.id) },
        { replace: request === undefined },
      ),
  };
}
