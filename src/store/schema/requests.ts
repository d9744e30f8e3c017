import { sql } from "drizzle-orm";
import { mapCounters, usageFields } from "../../domain/usage.ts";
import type { Columns } from "./columns.ts";

// oxlint-disable-next-line typescript/explicit-function-return-type, typescript/explicit-module-boundary-types -- the tables' types are this function's result
export function defineRequestLogTables({ table, rowId, integer, text, index }: Columns) {
  return {
    /** One row for each request, by id in the order of their commits. Times end in Us: microseconds. */
    requestLog: table(
      "request_log",
      {
        id: rowId(),
        endedAt: integer().notNull(),
        requestId: text().notNull(),
        keyId: integer(),
        address: text().notNull(),
        client: text(),
        /** What it is for, as far as its client says or shows that. */
        requestClass: text(),
        method: text().notNull(),
        path: text().notNull(),
        modelAsked: text(),
        modelSent: text(),
        backend: text(),
        /** Why it went to that backend; null if there was no choice. */
        reason: text(),
        status: integer().notNull(),
        outcome: text().notNull(),
        code: text(),
        cause: text(),
        /** Bits; see `store/requests/row.ts`. */
        flags: integer().notNull(),
        ...mapCounters(usageFields, () => integer()),
        estimatedTokens: integer(),
        /** How much of the input was expected to come from the backend's cache; null if there was no choice. */
        expectedCachedTokens: integer(),
        /** A number that its turns have in common; null if it is of none, or there is one backend. */
        conversation: integer(),
        /** Why its input did not come from the cache; null if it did, or that is not known. */
        cacheLoss: text(),
        /** How often it was sent to the backend; null: once, or not at all. */
        sends: integer(),
        queueUs: integer(),
        upstreamUs: integer(),
        firstByteUs: integer(),
        durationUs: integer().notNull(),
        responseBytes: integer(),
        maxTokensFrom: integer(),
        maxTokensTo: integer(),
        /** 1 if the request did not complete with a status below 400. */
        isFailed: integer().notNull(),
      },
      (t) => [
        index("request_log_key").on(t.keyId, t.id),
        index("request_log_request_id").on(t.requestId),
        index("request_log_failed")
          .on(t.id)
          .where(sql`is_failed = 1`),
      ],
    ),
  };
}
