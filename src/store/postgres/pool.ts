import { AsyncLocalStorage } from "node:async_hooks";
import { SQL } from "bun";
import { within } from "../../time/wait.ts";
import { AddressError, placeOf, StorageError, toStorageError, unreachable } from "../storage-error.ts";

/** The server ends a transaction of an instance that has stopped in the middle of it, and thus releases its locks. */
const defaultIdleInTransactionMs = 10_000;
const maxTransactionTries = 5;
export const applicationName = "tollgate";

/** Firewalls and NAT drop a connection that has been idle for minutes, without a reset to either side. */
const idleTimeoutSeconds = 60;

/** SQLSTATE: deadlock_detected, serialization_failure. The transaction was rolled back and can be repeated. */
const repeatable = new Set(["40P01", "40001"]);
/** SQLSTATE: read_only_sql_transaction. */
const readOnlyTransaction = "25006";

interface PoolOptions {
  url: string;
  connections: number;
  /** The server cancels a statement after this time; 0 disables the timeout. */
  statementTimeoutMs: number;
  /** The server ends a transaction in which nothing happens for this time. */
  idleInTransactionMs?: number;
}

/** The part of a client that Drizzle uses. Within a transaction, queries go over its connection. */
export type QueryClient = Pick<SQL, "unsafe">;

export type PostgresPool = ReturnType<typeof createPostgresPool>;

/** Connects on first use. @throws AddressError if the address is malformed */
export function createPostgresPool(options: PoolOptions) {
  let connections = connect(options);
  let connectedAt = performance.now();
  const transactionConnection = new AsyncLocalStorage<SQL>();
  const client: QueryClient = {
    unsafe: (query, values) => (transactionConnection.getStore() ?? connections).unsafe(query, values),
  };

  function replaceConnections(failed: SQL): void {
    if (failed !== connections) return;
    connections = connect(options);
    connectedAt = performance.now();
    failed.close({ timeout: 0 }).catch(() => {});
  }

  return {
    client,
    async transaction<T>(work: () => Promise<T>): Promise<T> {
      for (let tries = 1; ; tries++) {
        try {
          return (await connections.begin((connection) => transactionConnection.run(connection, work))) as T;
        } catch (error) {
          if (tries === maxTransactionTries || !repeatable.has(sqlStateOf(error))) throw error;
        }
      }
    },
    /**
     * Rejects if the work takes longer. The connections are then replaced, unless the server may yet cancel what they do:
     * those to a server that stopped responding would stay busy for minutes, even after it is back.
     * @throws StorageError
     */
    async withTimeout<T>(timeoutMs: number, work: () => Promise<T>): Promise<T> {
      const used = connections;
      try {
        return await within(timeoutMs, work(), () => {
          // A statement that waits for a lock keeps its connection at the server until the server cancels it. Later ones may
          // not leave more and more of them behind.
          if (performance.now() - connectedAt >= options.statementTimeoutMs) replaceConnections(used);
          return new StorageError("PostgreSQL does not respond");
        });
      } catch (error) {
        // After a failover the old primary is a standby. New connections reach the new primary.
        if (sqlStateOf(error) === readOnlyTransaction) replaceConnections(used);
        const failure = toStorageError(error);
        if (!failure.message.startsWith(unreachable)) throw failure;
        const where = `PostgreSQL at ${placeOf(options.url)}`;
        throw new StorageError(failure.message.replace("PostgreSQL", where), { cause: error });
      }
    },
    close: (): Promise<void> => connections.close({ timeout: 1 }),
  };
}

function connect({
  url,
  connections,
  statementTimeoutMs,
  idleInTransactionMs = defaultIdleInTransactionMs,
}: PoolOptions): SQL {
  try {
    return new SQL({
      url,
      // Explicit, because PGDATABASE takes precedence over the address. Remove when the address wins (Bun 1.4.5).
      ...databaseIn(url),
      adapter: "postgres",
      max: connections,
      connectionTimeout: 2,
      idleTimeout: idleTimeoutSeconds,
      connection: {
        application_name: applicationName,
        statement_timeout: statementTimeoutMs,
        idle_in_transaction_session_timeout: idleInTransactionMs,
      },
    });
  } catch (error) {
    // The original message may contain the address, and so the password.
    const problem = "the address is malformed; encode special characters of the password, such as # as %23";
    throw new AddressError(problem, { cause: error });
  }
}

function databaseIn(url: string): { database?: string } {
  const name = URL.parse(url)?.pathname.slice(1) ?? "";
  return name === "" ? {} : { database: decodeURIComponent(name) };
}

/** The server closed the connection, or it broke. Whether the statement was executed is unknown. */
export function isConnectionLost(error: unknown): boolean {
  // SQLSTATE 57P01 to 57P03: admin_shutdown, crash_shutdown, cannot_connect_now.
  return sqlStateOf(error).startsWith("57P0") || codeOf(error) === "ERR_POSTGRES_CONNECTION_CLOSED";
}

function codeOf(error: unknown): string {
  const cause = causeOf(error);
  return cause instanceof SQL.PostgresError ? cause.code : "";
}

/** The five-character code, which Bun puts into `errno` (1.4.5); empty if the error does not come from the server. */
export function sqlStateOf(error: unknown): string {
  const cause = causeOf(error);
  return cause instanceof SQL.PostgresError && typeof cause.errno === "string" ? cause.errno : "";
}

/** Drizzle wraps the errors of the driver. */
const causeOf = (error: unknown): unknown =>
  error instanceof Error && error.cause instanceof Error ? error.cause : error;
