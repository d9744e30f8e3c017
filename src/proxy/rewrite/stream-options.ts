import type { JsonEditor } from "../json/edit.ts";
import { findMember, isLiteral, type JsonObjectNode } from "../json/read.ts";
import type { RewriteRules } from "./rules.ts";

/** What a stream will carry for our own counting alone; the answer's filter takes it out again. */
export interface UsageAdded {
  includeUsage: boolean;
  continuousUsage: boolean;
}

export const noUsageAdded: UsageAdded = { includeUsage: false, continuousUsage: false };

/** Asks a stream for its usage where the client did not. The caller knows that the body says `"stream": true`. */
export function askForUsage(
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
 * `include_usage: false` (or null) is turned into true and its frame taken out again, so that the client gets what it
 * asked for and is counted all the same. Options without the member are left alone: vLLM reads them as true.
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
  // The client's own wish for them had no effect without include_usage, so what it brings now is ours.
  const awakened = includeUsage && isLiteral(body, continuous, "true");
  return { includeUsage, continuousUsage: adds || awakened };
}
