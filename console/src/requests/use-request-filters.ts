import { createMemo } from "solid-js";
import { useUrlParameters } from "../lib/url-parameters.ts";
import { requestsHref } from "../lib/requests-href.ts";
import type { LoggedRequest, OpenedRequest } from "./queries.ts";
import {
  filterNames as names,
  type RequestFilterName,
  requestFilterQuery,
  type RequestParameters,
  requestTimeQuery,
} from "./request-filters.ts";
import { findGrouping } from "./request-groups.ts";

export type RequestFilters = ReturnType<typeof useRequestFilters>;

/** The filters of the request log, and the request that is open. All of them are part of the URL. */
export function useRequestFilters() {
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
    value: (name: RequestFilterName): string => chosen()[name] ?? "",
    set: (name: RequestFilterName, value: string) =>
      setParameters({ [name]: value.trim() || undefined }, { replace: true }),
    query,
    timeQuery,
    isFiltered: () => names.some((name) => (chosen()[name] ?? "") !== ""),
    clear: () => setParameters(Object.fromEntries(names.map((name) => [name, undefined])), { replace: true }),
    /** Undefined: the requests are listed one by one. */
    grouping: () => findGrouping(parameters.group),
    setGrouping: (by: string) => setParameters({ group: by || undefined }, { replace: true }),
    /** The address of the list with one more filter. */
    href: (name: RequestFilterName, value: string) => requestsHref({ ...chosen(), [name]: value }),
    opened,
    open: (request: LoggedRequest | undefined) =>
      setParameters(
        { open: request?.request_id, row: request && String(request.id) },
        { replace: request === undefined },
      ),
  };
}
