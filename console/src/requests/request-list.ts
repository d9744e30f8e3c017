import { replaceEqualDeep } from "@tanstack/solid-query";

interface Ended {
  id: number;
  ended_at: string;
}

/** The requests of all lists, newest first, each once. The log corrects some: the first of two is to be read last. */
export function mergeRequests<T extends Ended>(...lists: readonly (readonly T[])[]): T[] {
  const byId = new Map<number, T>();
  for (const list of lists) {
    for (const request of list) {
      if (!byId.has(request.id)) byId.set(request.id, request);
    }
  }
  return [...byId.values()].toSorted((a, b) => Date.parse(b.ended_at) - Date.parse(a.ended_at) || b.id - a.id);
}

/** The list with the objects that were in it before, so that the table keeps their rows, and the focus in them. */
export function keepObjects<T extends Ended>(shown: readonly T[], list: readonly T[]): T[] {
  const known = new Map(shown.map((request) => [request.id, request]));
  return list.map((request) => replaceEqualDeep(known.get(request.id), request));
}
