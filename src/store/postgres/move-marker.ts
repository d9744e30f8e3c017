import type { PostgresPool } from "./pool.ts";
import { StorageError } from "../storage-error.ts";

/**
 * A setting that exists in the target until a move is complete, so that no server starts on incomplete data. Its value is
 * empty until everything is copied, and then `copied`.
 */
export const moveMarker = "move_unfinished";

type Client = Pick<PostgresPool, "client">;

export const isMoveUnfinished = async (pool: Client): Promise<boolean> => (await findMarker(pool)) !== undefined;

/** @throws StorageError if a move into this database is unfinished: no server starts on incomplete data */
export async function requireMoveFinished(pool: Client): Promise<void> {
  if (!(await isMoveUnfinished(pool))) return;
  throw new StorageError("a move into this database was not finished; run `tollgate move-to` again");
}

/** Whether all that a move had left to do was to mark the data folder and to release the target. */
export const isMoveCopied = async (pool: Client): Promise<boolean> => (await findMarker(pool))?.value === "copied";

async function findMarker({ client }: Client): Promise<{ value: string } | undefined> {
  const [found] = (await client.unsafe("select value from settings where name = $1", [moveMarker])) as {
    value: string;
  }[];
  return found;
}
