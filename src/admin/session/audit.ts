import type { AdminDeps } from "../http/deps.ts";
import type { Static } from "@sinclair/typebox";
import type { Change } from "../../domain/changes.ts";
import { csvLine } from "../../domain/csv.ts";
import * as schema from "../http/schemas.ts";
import { streamJson } from "../http/json-stream.ts";
import type { Caller, ChangeContext } from "./auth.ts";
import { auditRow, type auditBody, type AuditQuery } from "./contract.ts";

type AuditedContext = Caller & { request: Request; params?: { id?: string; name?: string } };

/** Declares that a route changes something: its handler gets `by`, and the methods of the store that get it record it. */
export const changes = <Context extends ChangeContext, Result>(
  action: string,
  handler: (context: Context) => Result,
): ((context: Omit<Context, "by"> & AuditedContext) => Result) & { action: string } =>
  Object.assign(
    (context: Omit<Context, "by"> & AuditedContext) =>
      handler(Object.assign(context, { by: changeOf(action, context) }) as unknown as Context),
    { action },
  );

function changeOf(action: string, { request, actor, role, session, params }: AuditedContext): Change {
  const id = params?.id ?? params?.name;
  // Several people may have one name.
  const by = session?.userId === null ? "password" : `user ${session?.userId}`;
  return {
    actor: session === undefined ? actor.username : `${actor.username} (${by})`,
    role,
    address: actor.address,
    action,
    ...(id !== undefined && { id }),
    requestId: idOf(request.headers.get("x-request-id")),
    changeId: idOf(request.headers.get("x-change-id")),
  };
}

const idOf = (header: string | null): string | null => header?.match(/^[\x21-\x7e]{1,128}$/)?.[0] ?? null;

const rowsPerPage = 100;

export const listAudit =
  ({ store, log }: AdminDeps) =>
  async ({ request, query }: { request: Request; query: AuditQuery }): Promise<Response> => {
    const { cursor = Number.MAX_SAFE_INTEGER, format, ...filter } = query;
    const readBefore = async (id: number): Promise<RowBody[]> =>
      (await store.audit.list({ ...filter, before: id, limit: rowsPerPage })).map(schema.apiBody);
    if (format === "csv") {
      return streamJson(request, [csvLine(columns), csvLines(readBefore, Number(cursor)), ""], log, csvHeaders);
    }
    const rows = await readBefore(Number(cursor));
    const nextCursor = rows.length < rowsPerPage ? null : String(rows.at(-1)?.id);
    return Response.json({ rows, next_cursor: nextCursor } satisfies Static<typeof auditBody>);
  };

type RowBody = Static<typeof auditRow>;

const columns = Object.keys(auditRow.properties) as (keyof RowBody)[];
const csvHeaders = {
  "content-type": "text/csv;charset=utf-8",
  "content-disposition": "attachment; filename=changes.csv",
};

async function* csvLines(readBefore: (id: number) => Promise<RowBody[]>, last: number): AsyncGenerator<Uint8Array> {
  for (let id: number | undefined = last; id !== undefined;) {
    const rows = await readBefore(id);
    yield Buffer.from(rows.map((row) => csvLine(columns.map((column) => row[column] ?? ""))).join(""));
    id = rows[rowsPerPage - 1]?.id;
  }
}
