interface Ended {
  id: number;
  ended_at: string;
}

/** The requests of all lists, newest first, each once. Rows of the log never change, so the first of two is kept. */
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
  return list.map((request) => {
    const before = known.get(request.id);
    // One that waited long for its commit is corrected once.
    return before?.ended_at === request.ended_at ? before : request;
  });
}
