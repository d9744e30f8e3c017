import type { AdminDeps } from "../http/deps.ts";
import { parseJson } from "../../domain/json.ts";
import type { CostPosition, CostRange, CostRow } from "../../store/reports/contract.ts";
import { dayFromNumber, dayNumberFrom, dayNumberOf } from "../../time/seoul.ts";
import { ApiError } from "../http/errors.ts";
import { counterMembers, cursorMessage } from "../http/schemas.ts";
import type { CostsBody, CostsQuery } from "./cost-contract.ts";
import { modelPricesOf, readPrices } from "./prices.ts";
import { keyFilterOf } from "./ranges.ts";
import { readReport } from "./report.ts";

const maxDays = 366;
const defaultDays = 30;

export const listCosts =
  ({ store, clock }: AdminDeps) =>
  async ({ query }: { query: CostsQuery }): Promise<CostsBody> => {
    const { by, limit, cursor } = query;
    const prices = await readPrices(store);
    const range = {
      ...daysOf(query, dayNumberOf(clock())),
      by,
      teamId: query.team_id,
      userId: query.user_id,
      limit,
      prices: modelPricesOf(prices),
      after: cursor === undefined ? undefined : positionOf(cursor),
      ...keyFilterOf(query),
    };
    const { rows, names, next } = await readReport(store.usage.costs(range));
    const nameOf = new Map(names);
    return {
      from: dayFromNumber(range.firstDay),
      to: dayFromNumber(range.lastDay),
      by,
      currency: prices.currency,
      rows: rows.map((row) => rowBody(row, by, nameOf.get(row.keyId) ?? "")),
      next_cursor: next === null ? null : cursorOf(next),
    };
  };

function daysOf({ from, to }: CostsQuery, today: number): Pick<CostRange, "firstDay" | "lastDay"> {
  const lastDay = to === undefined ? today : dayNumberFrom(to);
  const firstDay = from === undefined ? lastDay - defaultDays + 1 : dayNumberFrom(from);
  if (firstDay > lastDay) throw new ApiError(400, "from must not be after to");
  if (lastDay - firstDay >= maxDays) throw new ApiError(400, `from and to must be at most ${maxDays} days apart`);
  return { firstDay, lastDay };
}

const rowBody = (row: CostRow, by: CostsQuery["by"], keyName: string): CostsBody["rows"][number] => ({
  date: by === "day" || by === "day_key" ? dayFromNumber(row.day) : null,
  ...(by === "key" || by === "key_model" || by === "day_key"
    ? { key_id: row.keyId, key_name: keyName }
    : { key_id: null, key_name: null }),
  ...(by === "team" ? { team_id: row.keyId, team_name: keyName } : { team_id: null, team_name: null }),
  ...(by === "user" ? { user_id: row.keyId, user_name: keyName } : { user_id: null, user_name: null }),
  model: by === "model" || by === "key_model" ? row.text : null,
  tag: by === "tag" ? row.text : null,
  owner: by === "owner" ? row.text : null,
  request_count: row.requestCount,
  ...counterMembers((field) => row[field]),
  cost: row.cost,
  cost_is_partial: row.isPartial,
});

const cursorOf = ({ day, keyId, text }: CostPosition): string =>
  Buffer.from(JSON.stringify([day, keyId, text])).toString("base64url");

function positionOf(cursor: string): CostPosition {
  const found = parseJson(Buffer.from(cursor, "base64url").toString());
  const [day, keyId, text] = Array.isArray(found) ? (found as unknown[]) : [];
  if (Number.isSafeInteger(day) && Number.isSafeInteger(keyId) && typeof text === "string")
    return { day: Number(day), keyId: Number(keyId), text };
  throw new ApiError(400, cursorMessage);
}
