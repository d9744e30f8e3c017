import { StorageError } from "./store.ts";

/** SQLite's primary result codes in words for an operator; extended codes begin with one of them. */
const explanations: readonly (readonly [code: string, explanation: string])[] = [
  ["SQLITE_FULL", "the disk is full"],
  ["SQLITE_BUSY", "another program keeps the database locked"],
  ["SQLITE_LOCKED", "another program keeps the database locked"],
  ["SQLITE_READONLY", "the database may not be written; check the file's and the folder's permissions"],
  ["SQLITE_CANTOPEN", "the database cannot be opened; check the folder and its permissions"],
  ["SQLITE_IOERR", "the disk failed to read or write"],
  ["SQLITE_CORRUPT", "the database is damaged; restore a backup"],
  ["SQLITE_NOTADB", "the file is not a database of this program"],
  ["EACCES", "the data folder may not be written; check its permissions"],
  ["EROFS", "the data folder is on a read-only disk"],
  ["ENOSPC", "the disk is full"],
  ["ENOTDIR", "the data folder is not a folder"],
  ["EEXIST", "the file exists already"],
  ["ENOENT", "the folder does not exist"],
  ["ERR_POSTGRES_CONNECTION_REFUSED", "PostgreSQL cannot be reached"],
  ["ERR_POSTGRES_CONNECTION", "the connection to PostgreSQL was lost"],
];

/** Any failure of the engine as one sentence. Messages of a StorageError are kept. */
export function toStorageError(error: unknown): StorageError {
  if (error instanceof StorageError) return error;
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const code = codeOf(cause);
  const known = explanations.find(([prefix]) => code.startsWith(prefix));
  const explanation = known?.[1] ?? (cause instanceof Error ? cause.message : String(cause));
  return new StorageError(code === "" ? explanation : `${explanation} (${code})`, { cause: error });
}

function codeOf(cause: unknown): string {
  if (!(cause instanceof Error) || !("code" in cause)) return "";
  // PostgreSQL's own code says more than that the server refused.
  return "errno" in cause && cause.code === "ERR_POSTGRES_SERVER_ERROR" ? String(cause.errno) : String(cause.code);
}
