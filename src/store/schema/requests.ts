import { type NotNull, sql } from "drizzle-orm";
import { type RequestColumnFields, columnFields } from "../../domain/request-fields.ts";
import type { Columns } from "./columns.ts";

export function defineRequestLogTables({ table, rowId, integer, text, index }: Columns) {
  return {
    /** One row for each request, by id in the order of their commits. Times end in Us: microseconds. */
    requestLog: table(
      "request_log",
      {
        id: rowId(),
        ...fieldColumns({ integer, text }),
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

type FieldColumns = { [Name in keyof RequestColumnFields]: ColumnOf<RequestColumnFields[Name]> };
type ColumnOf<Field extends { kind: string }> = Field extends { nullable: true }
  ? BuilderOf<Field["kind"]>
  : NotNull<BuilderOf<Field["kind"]>>;
type BuilderOf<Kind extends string> = ReturnType<Columns[Kind extends "text" ? "text" : "integer"]>;

const fieldColumns = ({ integer, text }: Pick<Columns, "integer" | "text">): FieldColumns =>
  Object.fromEntries(
    columnFields.map(({ column, kind, nullable }) => {
      const builder = kind === "text" ? text() : integer();
      return [column, nullable ? builder : builder.notNull()];
    }),
  ) as FieldColumns;
