import { plural } from "../lib/format.ts";
import type { Settings } from "../queries.ts";

export interface AskedModel {
  model: string | null;
  request_count: number;
}

/**
 * What to tell an operator whose clients ask for names of a vendor's models, which no setting turns into the served model:
 * most backends have no such model. Undefined if there is nothing to tell.
 */
export function vendorNamesProblem(settings: Settings["settings"], asked: readonly AskedModel[]): string | undefined {
  const valueOf = (name: string): string => settings.find((setting) => setting.name === name)?.value ?? "";
  // A file has aliases of its own, and counts under the names of its models.
  if (valueOf("PROXY_ALIAS_MODEL") !== "" || valueOf("MODELS_FILE") !== "") return undefined;
  const prefixes = valueOf("PROXY_VENDOR_PREFIXES")
    .split(",")
    .map((prefix) => prefix.trim().toLowerCase())
    .filter((prefix) => prefix !== "");
  const found = asked
    .filter(({ model }) => prefixes.some((prefix) => model?.toLowerCase().startsWith(`${prefix}-`)))
    .toSorted((a, b) => b.request_count - a.request_count);
  const [most, ...others] = found;
  if (most === undefined) return undefined;
  const requests = found.reduce((sum, { request_count: count }) => sum + count, 0);
  const names = others.length === 0 ? most.model : `${most.model} and ${plural(others.length, "other name")}`;
  return (
    `${plural(requests, "request")} since yesterday asked for ${names}, and nothing turns that into the served model. ` +
    "Set PROXY_ALIAS_MODEL to that model’s name."
  );
}
