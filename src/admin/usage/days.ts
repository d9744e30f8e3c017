import { dayBefore, dayOf } from "../../time/seoul.ts";
import { keyFilterOf, parseDay } from "../http/query.ts";
import { readReport } from "./report.ts";
import type { ByDayAndKeyQuery, ByDayQuery, UsageByDay, UsageByDayAndKey } from "./contract.ts";
import type { UsageDeps } from "./usage.ts";

type Deps = Pick<UsageDeps, "store" | "clock">;

export const getUsageByDay =
  ({ store, clock }: Deps) =>
  async ({ query }: { query: ByDayQuery }): Promise<UsageByDay> => {
    const today = dayOf(clock());
    const range = { firstDay: dayBefore(today, query.days), ...keyFilterOf(query) };
    return { today, ...(await readReport<Omit<UsageByDay, "today">>(store.usage.byDay(range))) };
  };

export const listUsageByDayAndKey =
  ({ store, clock }: Deps) =>
  async ({ query }: { query: ByDayAndKeyQuery }): Promise<UsageByDayAndKey> => {
    const firstDay = dayBefore(dayOf(clock()), query.days);
    const beforeDay = parseDay("before", query.before);
    return readReport(store.usage.byDayAndKey({ firstDay, beforeDay, ...keyFilterOf(query) }));
  };
