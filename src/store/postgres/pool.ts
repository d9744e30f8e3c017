import { AsyncLocalStorage } from "node:async_hooks";
import { SQL } from "bun";
import { toStorageError } from "../storage-error.ts";
import { StorageError } from "../store.ts";

/** What an instance that stands still in the middle of a transaction may hold up. */
const idleInTransactionMs = 10_000;
const transactionTries = 5;

/** Hops in between forget a connection that was silent for some minutes, without telling either side. */
const idleSeconds = 60;

/** SQLSTATE: deadlock_detected, serialization_failure. The transaction is undone, and may be run again. */
const undone = new Set(["40P01", "40001"]);
/** SQLSTATE: read_only_sql_transaction. */
const readOnly = "25006";

export interface PoolOptions {
  url: string;
  connections: number;
  /** What the server spends on one statement before it gives up; 0: as long as it takes. */
  statementTimeoutMs: number;
}

/** What Drizzle calls of a client. Within a transaction it speaks over that transaction's connection. */
export type QueryClient = Pick<SQL, "unsafe">;

export interface PostgresPool {
  client: QueryClient;
  transaction<T>(work: () => Promise<T>): Promise<T>;
  /**
   * Work that waits this long and no longer. Connections to a server that fell silent are given up for new ones: they would
   * stay busy for minutes, whether the server is back or not.
   * Remove when Bun.SQL has a timeout for a query (1.4.5).
   * @throws StorageError
   */
  within<T>(timeoutMs: number, work: () => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** Connections are made when they are needed. @throws StorageError where the address makes no sense */
export function createPostgresPool(options: PoolOptions): PostgresPool {
  let connections = connect(options);
  const ownConnection = new AsyncLocalStorage<SQL>();
  const client: QueryClient = {
    unsafe: (query, values) => (ownConnection.getStore() ?? connections).unsafe(query, values),
  };

  function giveUp(useless: SQL): void {
    if (useless !== connections) return;
    connections = connect(options);
    useless.close({ timeout: 0 }).catch(() => {});
  }

  return {
    client,
    async transaction(work) {
      for (let tries = 1; ; tries++) {
        try {
          return (await connections.begin((own) => ownConnection.run(own, work))) as Awaited<ReturnType<typeof work>>;
        } catch (error) {
          if (tries === transactionTries || !undone.has(sqlStateOf(error))) throw error;
        }
      }
    },
    async within(timeoutMs, work) {
      const used = connections;
      const { promise: silence, reject } = Promise.withResolvers<never>();
      const timer = setTimeout(() => {
        reject(new StorageError("PostgreSQL does not answer"));
        giveUp(used);
      }, timeoutMs);
      try {
        return await Promise.race([work(), silence]);
      } catch (error) {
        // After a failover the server that was the first is a follower: the address leads to another one by now.
        if (sqlStateOf(error) === readOnly) giveUp(used);
        throw toStorageError(error);
      } finally {
        clearTimeout(timer);
      }
    },
    close: () => connections.close({ timeout: 1 }),
  };
}

function connect({ url, connections, statementTimeoutMs }: PoolOptions): SQL {
  try {
    return new SQL({
      url,
      // PGDATABASE would take precedence over what the address says.
      // Remove when the address wins (Bun 1.4.5).
      ...databaseIn(url),
      adapter: "postgres",
      max: connections,
      connectionTimeout: 2,
      idleTimeout: idleSeconds,
      connection: {
        application_name: "tollgate",
        statement_timeout: statementTimeoutMs,
        idle_in_transaction_session_timeout: idleInTransactionMs,
      },
    });
  } catch (error) {
    // Its message may quote the address, and with it the password.
    throw new StorageError("the address is malformed", { cause: error });
  }
}

function databaseIn(url: string): { database?: string } {
  const name = URL.parse(url)?.pathname.slice(1) ?? "";
  return name === "" ? {} : { database: decodeURIComponent(name) };
}

/** The server ended the connection, or it broke: whether the work was done is unknown. */
export function isConnectionLost(error: unknown): boolean {
  // SQLSTATE 57P01 to 57P03: shut down by an administrator, after a crash, or still starting.
  return sqlStateOf(error).startsWith("57P0") || codeOf(error) === "ERR_POSTGRES_CONNECTION_CLOSED";
}

function codeOf(error: unknown): string {
  const cause = causeOf(error);
  return cause instanceof SQL.PostgresError ? cause.code : "";
}

/** Bun keeps the server's five-character code here; empty where the failure is not the server's. */
export function sqlStateOf(error: unknown): string {
  const cause = causeOf(error);
  return cause instanceof SQL.PostgresError && typeof cause.errno === "string" ? cause.errno : "";
}

/** Drizzle wraps what the driver throws. */
const causeOf = (error: unknown): unknown =>
  error instanceof Error && error.cause instanceof Error ? error.cause : error;
