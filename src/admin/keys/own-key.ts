import type { Store } from "../../store/store.ts";
import type { WallClock } from "../../time/clock.ts";
import { dayFromNumber, dayNumberOf, monthOf, timestampOf, windowResetAt } from "../../time/seoul.ts";
import { shareNextRun } from "../../time/per-tick.ts";
import { ApiError } from "../http/errors.ts";
import { limitsBody, maskedKeyBody } from "./body.ts";
import { countersBody } from "../usage/report.ts";
import { usageTotalBody } from "../usage/usage.ts";
import { type KeyId, type SubjectId, subjectOf, type TeamId } from "../../domain/keys.ts";
import { limitKinds, perWindowLimit } from "../../domain/limits.ts";
import { type UsageSum, addSums, noSum } from "../../domain/usage.ts";
import { usageTotal, usageSum } from "../usage/contract.ts";
import { type Static, Type as t } from "@sinclair/typebox";
import { keyBody, limits } from "./contract.ts";
import * as schema from "../http/schemas.ts";

const chargedTotal = t.Object({
  ...usageTotal.properties,
  estimated_tokens: t.Integer({ description: "Charged to the limits of tokens where the backend reported none" }),
});

export const limitedBody = {
  name: t.String(),
  ...limits,
  ...t.Pick(keyBody, ["limits_extra", "used", "limit_states"]).properties,
};
export const daysBody = {
  today: chargedTotal,
  this_month: chargedTotal,
  daily: t.Array(t.Object({ date: t.String({ format: "date" }), ...usageSum })),
};

/** What the holder of a key may know about it: nothing about other keys, and no notes of operators. */
export const ownKey = t.Object({
  ...t.Pick(keyBody, ["id", "expires_at", "scope", "allowed_models", "allowed_paths", "refused_today"]).properties,
  ...limitedBody,
  now: schema.timestamp,
  resets: t.Object(
    perWindowLimit(() => schema.nullable(schema.timestamp)),
    { description: "When what counts now no longer counts" },
  ),
  team: schema.nullable(t.Object(limitedBody, { description: "Its limits hold too; null: none" })),
  ...daysBody,
});
type OwnKeyBody = Static<typeof ownKey>;

export const ownKeyContract = schema.responds("The limits and the usage of the API key itself", ownKey);

const shownDays = 30;

interface OwnKeyDeps {
  store: Pick<Store, "keys" | "subjects" | "limits">;
  clock: WallClock;
}

export const describeOwnKey = ({ store, clock }: OwnKeyDeps): ((keyId: KeyId) => Promise<OwnKeyBody | undefined>) =>
  shareNextRun(async (keyId) => {
    const now = clock();
    const [[key], [load], days] = await Promise.all([
      store.keys.list({ after: keyId - 1, limit: 1 }),
      store.limits.listLoads([keyId]),
      readDays(store.limits, keyId, now),
    ]);
    if (key?.id !== keyId || load === undefined) return undefined;
    const user = await findSubject(store, "user", key.userId);
    const { id, name, expires_at, scope, allowed_models, allowed_paths, refused_today } = maskedKeyBody(key, load);
    return {
      id,
      name,
      expires_at,
      scope,
      allowed_models,
      allowed_paths,
      refused_today,
      ...limitsBody(key.rules, load),
      now: timestampOf(now),
      resets: perWindowLimit((limit) =>
        key.rules[limit] === null ? null : timestampOf(windowResetAt(limitKinds[limit].window, now)),
      ),
      team: await readTeam(store, user?.teamId ?? key.teamId),
      ...usageOfDays(days, now),
    };
  });

export const findSubject = async ({ subjects }: Pick<Store, "subjects">, kind: "team" | "user", id: number | null) =>
  id === null ? undefined : (await subjects.list({ kind, id }))[0];

export async function readTeam(store: OwnKeyDeps["store"], id: TeamId | null): Promise<OwnKeyBody["team"]> {
  const team = await findSubject(store, "team", id);
  if (team === undefined) return null;
  const [load] = await store.limits.listLoads([subjectOf(team.id)]);
  return { name: team.name, ...limitsBody(team.limits, load) };
}

/** Serves the console's page `/me`, which cannot reach `/v1` on another port. */
export function getOwnKey(deps: OwnKeyDeps) {
  const describe = describeOwnKey(deps);
  return async ({ keyId }: { keyId: KeyId }): Promise<OwnKeyBody> => {
    const found = await describe(keyId);
    if (found === undefined) throw new ApiError(401, "Invalid API key", { "www-authenticate": "Bearer" });
    return found;
  };
}

type Days = Awaited<ReturnType<Store["limits"]["listDays"]>>;

/** Of the last 30 days, or of this month where that is longer. */
export const readDays = ({ listDays }: Store["limits"], id: SubjectId, now: number): Promise<Days> =>
  listDays(id, Math.min(monthOf(now).firstDay, dayNumberOf(now) - shownDays + 1), dayNumberOf(now));

export function usageOfDays(days: Days, now: number): Pick<OwnKeyBody, "today" | "this_month" | "daily"> {
  const [today, { firstDay }] = [dayNumberOf(now), monthOf(now)];
  const totalSince = (first: number): OwnKeyBody["today"] => {
    const since = days.filter(({ day }) => day >= first);
    const estimated = since.reduce((sum, { estimatedTokens }) => sum + estimatedTokens, 0);
    return { ...usageTotalBody(since.reduce<UsageSum>(addSums, noSum)), estimated_tokens: estimated };
  };
  return {
    today: totalSince(today),
    this_month: totalSince(firstDay),
    daily: days
      .filter(({ day }) => day > today - shownDays)
      .map((sum) => Object.assign({ date: dayFromNumber(sum.day) }, countersBody(sum))),
  };
}
