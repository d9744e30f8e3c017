import type { JsonEditor } from "../json/edit.ts";
import { findMember, isLiteral, type JsonObjectNode } from "../json/read.ts";
import type { RewriteRules } from "./rules.ts";

/** What a stream has only for our own counting; the response's filter removes it. */
export interface UsageAdded {
  includeUsage: boolean;
  continuousUsage: boolean;
}

export const noUsageAdded: UsageAdded = { includeUsage: false, continuousUsage: false };

/** Requests a stream's usage if the client did not. To be called only for a body with `"stream": true`. */
export function requestUsage(
  editor: JsonEditor,
  body: string,
  root: JsonObjectNode,
  force: RewriteRules["forceStreamUsage"],
): UsageAdded {
  if (force === "off") return noUsageAdded;
  const options = findMember(root, "stream_options");
  if (options === undefined || isLiteral(body, options, "null")) {
    const continuousUsage = force === "continuous";
    const json = continuousUsage ? '{"include_usage":true,"continuous_usage_stats":true}' : '{"include_usage":true}';
    if (options === undefined) editor.addMember(root, "stream_options", json);
    else editor.replace(options, json);
    return { includeUsage: true, continuousUsage };
  }
  return options.kind === "object" ? completeOptions(editor, body, options, force) : noUsageAdded;
}

/**
 * Turns `include_usage: false` (or null) into true; the filter removes its frame, so that the client gets what it
 * requested and is still counted. Options without the member are left alone: vLLM reads them as true.
 */
function completeOptions(
  editor: JsonEditor,
  body: string,
  options: JsonObjectNode,
  force: "final" | "continuous",
): UsageAdded {
  const include = findMember(options, "include_usage");
  const includeUsage = isLiteral(body, include, "false") || isLiteral(body, include, "null");
  if (include === undefined || (!includeUsage && !isLiteral(body, include, "true"))) return noUsageAdded;
  if (includeUsage) editor.replace(include, "true");

  const continuous = findMember(options, "continuous_usage_stats");
  const adds = force === "continuous" && continuous === undefined;
  if (adds) editor.addMember(options, "continuous_usage_stats", "true");
  // Without include_usage, the client's own request for them had no effect, so what it causes now is ours.
  const activates = includeUsage && isLiteral(body, continuous, "true");
  return { includeUsage, continuousUsage: adds || activates };
}
