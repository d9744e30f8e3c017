import type { KeyRules } from "../../domain/keys.ts";
import { type LimitName, perLimit } from "../../domain/limits.ts";

export const noLimits: Record<LimitName, number | null> = perLimit(() => null);

/** The rules of a key that may do everything. */
export const noRules: KeyRules = {
  ...noLimits,
  limits_extra: null,
  priority: null,
  notify: null,
  scope: "all",
  allowed_models: null,
  allowed_paths: null,
  users_from: null,
  users_secrets: null,
  user_limits: null,
  users_max: null,
  users_required: null,
};

/** Null for rules that forbid nothing. */
export function jsonOfRules(rules: KeyRules): string | null {
  const names = Object.keys(noRules) as (keyof KeyRules)[];
  return names.every((name) => rules[name] === noRules[name]) ? null : JSON.stringify(rules);
}

/** @param json what `jsonOfRules` returned, perhaps in an older version that knew fewer rules */
export const parseRules = (json: string): KeyRules => ({ ...noRules, ...(JSON.parse(json) as Partial<KeyRules>) });
