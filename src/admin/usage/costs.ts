import type { AdminDeps } from "../http/deps.ts";
import { cachedTokensOf, wholeInput } from "../../domain/usage.ts";
import { type SubjectId, subjectOf } from "../../domain/keys.ts";
import { parseJson } from "../../domain/json.ts";
import type { CostPosition, CostRange, CostRow, CostSum } from "../../store/reports/contract.ts";
import {
  dayFromNumber,
  dayNumberFrom,
  dayNumberOf,
  hourOfDay,
  minutesPerHour,
  msPerDay,
  msPerMinute,
  timestampOf,
} from "../../time/seoul.ts";
import { ApiError } from "../http/errors.ts";
import { parseTimestamp } from "../http/query.ts";
import * as schema from "../http/schemas.ts";
import type { CostsBody, CostsQuery } from "./cost-contract.ts";
import { modelPricesOf, readPrices } from "./prices.ts";
import { hourDays, usageFilterOf } from "./ranges.ts";
import { readReport } from "./report.ts";

const msPerHour = minutesPerHour * msPerMinute;
const maxDays = 366;
const defaultDays = 30;

export const listCosts =
  ({ store, clock }: AdminDeps) =>
  async ({ query }: { query: CostsQuery }): Promise<CostsBody> => {
    const { by, limit, cursor } = query;
    const prices = await readPrices(store);
    const [changed] = await store.audit.list({ action: "prices.set", before: Number.MAX_SAFE_INTEGER, limit: 1 });
    const range = {
      ...daysOf(query, clock()),
      by,
      limit,
      prices: modelPricesOf(prices),
      after: cursor === undefined ? undefined : positionOf(cursor),
      ...usageFilterOf(query),
    };
    const { rows, total, names, labels, next } = await readReport(store.usage.costs(range));
    const nameOf = new Map(names);
    return {
      from: dayFromNumber(range.firstDay),
      to: dayFromNumber(range.lastDay),
      by,
      currency: prices.currency,
      rows: rows.map((row) =>
        rowBody(row, by, nameOf.get(by === "team" || by === "user" ? subjectOf(row.keyId) : row.keyId) ?? ""),
      ),
      total: cursor === undefined ? sumBody(total) : null,
      prices_changed_at: changed === undefined ? null : timestampOf(changed.at),
      names: namesBody(query, nameOf),
      labels,
      next_cursor: next === null ? null : cursorOf(next),
    };
  };

function namesBody({ key_id: key, team_id: team, user_id: user }: CostsQuery, names: ReadonlyMap<SubjectId, string>) {
  const nameOf = (id: SubjectId | undefined): string | null => (id === undefined ? null : (names.get(id) ?? null));
  return { key: nameOf(key), team: nameOf(team && subjectOf(team)), user: nameOf(user && subjectOf(user)) };
}

function daysOf(query: CostsQuery, nowMs: number): Pick<CostRange, "firstDay" | "lastDay" | "hours"> {
  const [since, until] = [parseTimestamp("since", query.since), parseTimestamp("until", query.until)];
  const hours = since === undefined || until === undefined ? undefined : hoursOf(since, until, nowMs);
  const dayOfHour = (hour: number): number => dayNumberOf(hour * msPerHour);
  const to = query.to === undefined ? dayNumberOf(nowMs) : dayNumberFrom(query.to);
  const lastDay = hours === undefined ? to : dayOfHour(hours.to - 1);
  const from = query.from === undefined ? lastDay - defaultDays + 1 : dayNumberFrom(query.from);
  const firstDay = hours === undefined ? from : dayOfHour(hours.from);
  if (firstDay > lastDay) throw new ApiError(400, "from must not be after to");
  if (lastDay - firstDay >= maxDays) throw new ApiError(400, `from and to must be at most ${maxDays} days apart`);
  return { firstDay, lastDay, hours };
}

/** Whole days of what is older than the hours that are kept. */
function hoursOf(since: number, until: number, nowMs: number): NonNullable<CostRange["hours"]> {
  if (since >= until) throw new ApiError(400, "since must be before until");
  const isKept = (at: number): boolean => at >= nowMs - hourDays * msPerDay;
  return {
    from: isKept(since) ? Math.floor(since / msPerHour) : hourOfDay(dayNumberOf(since)),
    to: isKept(until) ? Math.ceil(until / msPerHour) : hourOfDay(dayNumberOf(until - 1) + 1),
  };
}

const rowBody = (row: CostRow, by: CostsQuery["by"], keyName: string): CostsBody["rows"][number] => ({
  date: by === "day" ? dayFromNumber(row.day) : null,
  ...(by === "key" || by === "key_model" ? { key_id: row.keyId, key_name: keyName } : { key_id: null, key_name: null }),
  ...(by === "team" ? { team_id: row.keyId, team_name: keyName } : { team_id: null, team_name: null }),
  ...(by === "user" ? { user_id: row.keyId, user_name: keyName } : { user_id: null, user_name: null }),
  model: by === "model" || by === "key_model" ? row.text : null,
  tag: by === "tag" ? row.text : null,
  owner: by === "owner" ? row.text : null,
  ...sumBody(row),
});

const sumBody = (sum: CostSum) => ({
  request_count: sum.requestCount,
  ...schema.counterMembers((field) => sum[field]),
  prompt_tokens: wholeInput(sum),
  from_cache_tokens: cachedTokensOf(sum),
  cost: sum.cost,
  cost_is_partial: sum.isPartial,
});

const cursorOf = ({ day, keyId, text }: CostPosition): string =>
  Buffer.from(JSON.stringify([day, keyId, text])).toString("base64url");

function positionOf(cursor: string): CostPosition {
  const found = parseJson(Buffer.from(cursor, "base64url").toString());
  const [day, keyId, text] = Array.isArray(found) ? (found as unknown[]) : [];
  if (Number.isSafeInteger(day) && Number.isSafeInteger(keyId) && typeof text === "string")
    return { day: Number(day), keyId: Number(keyId), text };
  throw new ApiError(400, schema.cursorMessage);
}
