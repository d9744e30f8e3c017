import type { PostgresPool } from "./pool.ts";

/** A setting that a move leaves until it is whole: half of an operator's data must not be served as if it were all. */
export const moveMarker = "move_unfinished";

export async function isMoveUnfinished({ client }: Pick<PostgresPool, "client">): Promise<boolean> {
  const found = (await client.unsafe("select 1 from settings where name = $1", [moveMarker])) as unknown[];
  return found.length > 0;
}
