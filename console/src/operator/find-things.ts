import { matchesSearch } from "../lib/key-search.ts";
import { requestsHref } from "../lib/requests-href.ts";
import type { Key, Team, User } from "../queries.ts";
import type { Backend } from "./backend-queries.ts";

/** What the box looks through. */
export interface Things {
  keys: readonly Pick<Key, "id" | "name" | "key" | "owner" | "note" | "tags">[];
  teams: readonly Pick<Team, "id" | "name">[];
  users: readonly Pick<User, "id" | "name">[];
  backends: readonly Pick<Backend, "name" | "models">[];
  /** The id of a request that the log has. */
  requestId: string | undefined;
}

export interface Found {
  kind: string;
  label: string;
  /** The page of the thing itself. */
  href: string;
}

/** A longer list is not read. */
const maxOfKind = 5;

/** What a text may mean: the request that it names, then names that it is part of. */
export function findThings(text: string, things: Things): Found[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return [];
  const named = <Thing extends { name: string }>(list: readonly Thing[]): Thing[] =>
    list.filter(({ name }) => name.toLowerCase().includes(wanted));
  const models = [...new Set(things.backends.flatMap((backend) => backend.models))].map((name) => ({ name }));
  const found: readonly (readonly Found[])[] = [
    things.requestId === undefined
      ? []
      : [{ kind: "Request", label: things.requestId, href: requestsHref({ open: things.requestId }) }],
    things.keys
      .filter((key) => matchesSearch(key, wanted))
      .map(({ id, name }) => ({ kind: "API key", label: name, href: `/keys/${id}` })),
    named(things.teams).map(({ id, name }) => ({ kind: "Team", label: name, href: `/keys/teams/${id}` })),
    // The API has looked for them, by their ids at their front end too.
    things.users.map(({ id, name }) => ({ kind: "User", label: name, href: requestsHref({ user: String(id) }) })),
    named(models).map(({ name }) => ({ kind: "Model", label: name, href: requestsHref({ model: name }) })),
    named(things.backends).map(({ name }) => ({ kind: "Backend", label: name, href: "/backends" })),
  ];
  return found.flatMap((list) => list.slice(0, maxOfKind));
}
