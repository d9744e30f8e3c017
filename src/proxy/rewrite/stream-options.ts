import type { JsonEditor } from "../json/edit.ts";
import type { JsonSlot } from "../json/slots.ts";
import { isAbsentOrNull, isLenientFalse, isLenientTrue } from "./lenient.ts";
import type { StreamOptions } from "./request-body.ts";
import type { RewriteRules } from "./rules.ts";

/** What a stream has only for our own counting; the response's filter removes it. */
export interface UsageAdded {
  includeUsage: boolean;
  continuousUsage: boolean;
}

export const noUsageAdded: UsageAdded = { includeUsage: false, continuousUsage: false };

/** Requests a stream's usage if the client did not. To be called only for a body that asks for a stream. */
export function requestUsage(
  editor: JsonEditor,
  bytes: Uint8Array,
  root: JsonSlot,
  options: StreamOptions,
  force: RewriteRules["forceStreamUsage"],
): UsageAdded {
  if (force === "off") return noUsageAdded;
  const { slot } = options;
  if (isAbsentOrNull(bytes, slot)) {
    const continuousUsage = force === "continuous";
    const json = continuousUsage ? '{"include_usage":true,"continuous_usage_stats":true}' : '{"include_usage":true}';
    if (slot.kind === "absent") editor.addMember(root, "stream_options", json);
    else editor.replace(slot, json);
    return { includeUsage: true, continuousUsage };
  }
  return slot.kind === "object" ? completeOptions(editor, bytes, options, force) : noUsageAdded;
}

/**
 * Turns `include_usage: false` (or null) into true; the filter removes its frame, so that the client gets what it
 * requested and is still counted. Options without the member are left alone: vLLM reads them as true.
 */
function completeOptions(
  editor: JsonEditor,
  bytes: Uint8Array,
  { slot, includeUsage: include, continuousUsage: continuous }: StreamOptions,
  force: "final" | "continuous",
): UsageAdded {
  if (include.kind === "absent") return noUsageAdded;
  const includeUsage = isAbsentOrNull(bytes, include) || isLenientFalse(bytes, include);
  if (!includeUsage && !isLenientTrue(bytes, include)) return noUsageAdded;
  if (includeUsage) editor.replace(include, "true");

  const adds = force === "continuous" && continuous.kind === "absent";
  if (adds) editor.addMember(slot, "continuous_usage_stats", "true");
  // Without include_usage, the client's own request for them had no effect, so what it causes now is ours.
  const activates = includeUsage && isLenientTrue(bytes, continuous);
  return { includeUsage, continuousUsage: adds || activates };
}
