import { createMemo } from "solid-js";
import {
  type RequestFilterQuery,
  requestFilterQuery,
  type RequestParameters,
  requestTimeQuery,
} from "./request-filters.ts";
import { useUrlParameters } from "./url-parameters.ts";

const names = ["key", "result", "model", "path", "address", "id", "slower", "since", "until"] as const;
export type RequestFilterName = (typeof names)[number];

/** The filters of the request log, and the request that is open. All of them are part of the URL. */
export interface RequestFilters {
  value: (name: RequestFilterName) => string;
  set: (name: RequestFilterName, value: string) => void;
  query: () => RequestFilterQuery;
  timeQuery: () => { since?: string; until?: string };
  isFiltered: () => boolean;
  clear: () => void;
  openId: () => string | undefined;
  open: (requestId: string | undefined) => void;
}

export function useRequestFilters(): RequestFilters {
  const [parameters, setParameters] = useUrlParameters<RequestFilterName | "open">();
  const chosen = createMemo(
    (): RequestParameters => Object.fromEntries(names.map((name) => [name, parameters[name]])),
    undefined,
    { equals: (a, b) => names.every((name) => a[name] === b[name]) },
  );
  const query = createMemo(() => requestFilterQuery(chosen()));
  const timeQuery = createMemo(() => requestTimeQuery(chosen()));
  return {
    value: (name) => chosen()[name] ?? "",
    set: (name, value) => setParameters({ [name]: value.trim() || undefined }, { replace: true }),
    query,
    timeQuery,
    isFiltered: () => names.some((name) => (chosen()[name] ?? "") !== ""),
    clear: () => setParameters(Object.fromEntries(names.map((name) => [name, undefined])), { replace: true }),
    openId: () => parameters.open,
    open: (requestId) => setParameters({ open: requestId }, { replace: requestId === undefined }),
  };
}
