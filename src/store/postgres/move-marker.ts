import type { PostgresPool } from "./pool.ts";

/** A setting that exists in the target until a move is complete, so that no server starts on incomplete data. */
export const moveMarker = "move_unfinished";

export async function isMoveUnfinished({ client }: Pick<PostgresPool, "client">): Promise<boolean> {
  const found = (await client.unsafe("select 1 from settings where name = $1", [moveMarker])) as unknown[];
  return found.length > 0;
}
