// Whether a body requests a stream, by the booleans that backends read leniently, and the usage that is requested of it.

import { findNumber, findPositiveInteger, findString, isLiteral } from "../json/bytes.ts";
import type { JsonEditor } from "../json/edit.ts";
import { createRepeatedSlot, createSlot, type JsonSlot, type JsonValue } from "../json/slots.ts";
import type { ModelRules } from "../../domain/models.ts";

/** Words that backends (pydantic, and so vLLM and SGLang) read as booleans, in any case. */
const trueWords = new Set(["1", "t", "true", "y", "yes", "on"]);
const falseWords = new Set(["0", "f", "false", "n", "no", "off"]);

/** Whether backends read the value as this boolean. */
export function isLenientBoolean(bytes: Uint8Array, value: JsonValue, meant: boolean): boolean {
  if (value.kind === "literal") return isLiteral(bytes, value, String(meant));
  if (value.kind === "number") return findNumber(bytes, value) === Number(meant);
  return (meant ? trueWords : falseWords).has(findString(bytes, value)?.toLowerCase() ?? "");
}

/** @param stream the member. What is neither true nor false may be true to a backend. */
export const requestsStream = (bytes: Uint8Array, stream: JsonValue): boolean =>
  stream.kind !== "absent" && !isLiteral(bytes, stream, "null") && !isLenientBoolean(bytes, stream, false);

export type StreamOptions = ReturnType<typeof createStreamOptions>;

/** @param most of each that is edited */
export function createStreamOptions(most: number) {
  const includeUsage = createRepeatedSlot(most);
  const continuousUsage = createSlot();
  const members = { include_usage: includeUsage.slot, continuous_usage_stats: continuousUsage };
  return {
    all: createRepeatedSlot(most, { members, onStart: includeUsage.clear }),
    /** Members of the last of them. */
    includeUsage,
    continuousUsage,
    /** Beside them in the body. */
    timings: createSlot(),
    /** The same; absent where `RequestedTexts` has it. */
    n: createSlot(),
  };
}

export type ForceUsage = ModelRules["forceStreamUsage"];

/** What a stream has only for our own counting; the response's filter removes it. */
export interface UsageAdded {
  includeUsage: boolean;
  continuousUsage: boolean;
  /** Running counts of each choice, from llama.cpp: how many choices a prompt has. Unset: they are not added. */
  timedChoices?: number | undefined;
}

export const noUsageAdded: UsageAdded = { includeUsage: false, continuousUsage: false };

interface UsageWanted {
  force: ForceUsage;
  /** All that it may go to is llama.cpp. */
  isTimed: boolean;
  /** How many choices the body asks for, if another reader has that. */
  givenN: JsonValue | undefined;
}

const allOptions = {
  final: '{"include_usage":true}',
  continuous: '{"include_usage":true,"continuous_usage_stats":true}',
};

/**
 * Requests a stream's usage if the client did not. To be called only for a body that asks for a stream. Of several options
 * or members the last one says what the client wants; all of them are edited, because backends differ in which one they
 * read.
 */
export function requestUsage(
  editor: JsonEditor,
  bytes: Uint8Array,
  root: JsonSlot,
  options: StreamOptions,
  { force, isTimed, givenN }: UsageWanted,
): UsageAdded {
  if (force === "off") return noUsageAdded;
  const { slot, values } = options.all;
  const isObject = slot.kind === "object";
  const added = isObject
    ? completeOptions(editor, bytes, options, force)
    : { includeUsage: true, continuousUsage: force === "continuous" };
  const json = allOptions[added.continuousUsage ? "continuous" : "final"];
  for (const value of isObject ? values.slice(0, -1) : values) editor.replace(value, json);
  if (values.length === 0) editor.addMember(root, "stream_options", json);
  if (!isTimed || !added.continuousUsage) return added;
  return { ...added, ...requestTimings(editor, bytes, root, options, givenN) };
}

/** llama.cpp counts each choice as it runs, and no other way: not in a stream that is cut, nor all choices together. */
function requestTimings(
  editor: JsonEditor,
  bytes: Uint8Array,
  root: JsonSlot,
  { timings, n }: StreamOptions,
  givenN: JsonValue | undefined,
): Pick<UsageAdded, "timedChoices"> {
  if (isLenientBoolean(bytes, timings, true)) return {};
  if (timings.kind === "absent") editor.addMember(root, "timings_per_token", "true");
  else editor.replace(timings, "true");
  return { timedChoices: findPositiveInteger(bytes, givenN ?? n) ?? 1 };
}

/**
 * Turns every `include_usage` into true, which is the only value that llama.cpp takes for it. The filter removes the frame
 * of a client that refuses it, so that it gets what it requested and is still counted. A client that leaves the member out
 * gets the frame: who sends these options reads it, and vLLM takes a missing one for true.
 */
function completeOptions(
  editor: JsonEditor,
  bytes: Uint8Array,
  { all: { slot }, includeUsage, continuousUsage: continuous }: StreamOptions,
  force: "final" | "continuous",
): UsageAdded {
  const last = includeUsage.values.at(-1);
  if (last === undefined) editor.addMember(slot, "include_usage", "true");
  for (const value of includeUsage.values) if (!isLiteral(bytes, value, "true")) editor.replace(value, "true");
  const hidden = last !== undefined && !isLenientBoolean(bytes, last, true);

  const adds = force === "continuous" && continuous.kind === "absent";
  if (adds) editor.addMember(slot, "continuous_usage_stats", "true");
  // Without include_usage, the client's own request for them had no effect, so what it causes now is ours.
  const activates = hidden && isLenientBoolean(bytes, continuous, true);
  return { includeUsage: hidden, continuousUsage: adds || activates };
}
