export const unreachable = "PostgreSQL cannot be reached";

/** Explanations for the operator, by prefix: an extended SQLite result code starts with its primary code. */
const explanations: readonly (readonly [code: string, explanation: string])[] = [
  ["SQLITE_FULL", "the disk is full"],
  ["SQLITE_BUSY", "another program has locked the database"],
  ["SQLITE_LOCKED", "another program has locked the database"],
  ["SQLITE_READONLY", "the database is read-only; check the permissions of its file and folder"],
  ["SQLITE_CANTOPEN", "the database cannot be opened; check the data folder and its permissions"],
  ["SQLITE_IOERR_SHMSIZE", "the disk has no room for the file that readers of the database share"],
  ["SQLITE_IOERR", "the disk failed to read or write"],
  ["SQLITE_CORRUPT", "the database is damaged; restore a backup"],
  ["SQLITE_NOTADB", "the file is not a database of this program"],
  ["EACCES", "the data folder is not writable; check its permissions"],
  ["EROFS", "the data folder is on a read-only disk"],
  ["ENOSPC", "the disk is full"],
  ["ENOTDIR", "the data folder is not a folder"],
  ["EEXIST", "the file already exists"],
  ["ENOENT", "the folder does not exist"],
  ["ERR_POSTGRES_CONNECTION_REFUSED", unreachable],
  ["ERR_POSTGRES_CONNECTION_FAILED", unreachable],
  ["ERR_POSTGRES_CONNECTION", "the connection to PostgreSQL was lost"],
];

/**
 * Codes of writes that fail however often they are repeated. SQLSTATE: 22 data exception, such as a number out of range; 23
 * integrity constraint violation, 44 a view's own check, P0 an error that a function or trigger raises.
 */
const refusals = ["SQLITE_CONSTRAINT", "SQLITE_MISMATCH", "SQLITE_TOOBIG", "SQLITE_RANGE"] as const;
const refusedStates = /^(2[23]|44|P0)[0-9A-Z]{3}$/;

/** Turns any failure of the engine into a StorageError with one sentence and the error code. Returns a StorageError as it is. */
export function toStorageError(error: unknown): StorageError {
  if (error instanceof StorageError) return error;
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const code = codeOf(cause);
  const known = explanations.find(([prefix]) => code.startsWith(prefix));
  const explanation = known?.[1] ?? (cause instanceof Error ? cause.message : String(cause));
  return new StorageError(code === "" ? explanation : `${explanation} (${code})`, {
    cause: error,
    isRefusal: refusedStates.test(code) || refusals.some((prefix) => code.startsWith(prefix)),
    isFull: code.startsWith("SQLITE_FULL") || code === "ENOSPC",
  });
}

/** Where a database is, without user and password. */
export function placeOf(url: string): string {
  const { host = "", pathname = "" } = URL.parse(url) ?? {};
  return host + pathname;
}

function codeOf(cause: unknown): string {
  if (!(cause instanceof Error) || !("code" in cause)) return "";
  // Bun puts the SQLSTATE, which is more specific, into `errno` (1.4.5).
  return "errno" in cause && cause.code === "ERR_POSTGRES_SERVER_ERROR" ? String(cause.errno) : String(cause.code);
}

/** The database is full, locked, damaged, unreachable or too slow, or refuses a value. The message is meant for the operator. */
export class StorageError extends Error {
  override name = "StorageError";
  readonly isRefusal: boolean;
  readonly isFull: boolean;

  constructor(
    message: string,
    {
      isRefusal = false,
      isFull = false,
      ...options
    }: ErrorOptions & {
      /** The database works but refuses these values, so the same write fails again. */
      isRefusal?: boolean;
      /** The disk has no room: what is there can be read. */
      isFull?: boolean;
    } = {},
  ) {
    super(message, options);
    this.isRefusal = isRefusal;
    this.isFull = isFull;
  }
}

/** The address of the database is none: a wrong setting, which no second try mends. */
export class AddressError extends StorageError {
  override name = "AddressError";
}
