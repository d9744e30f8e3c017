import type { JsonEditor } from "../json/edit.ts";
import { createRepeatedSlot, type JsonSlot, type RepeatedSlot } from "../json/slots.ts";
import type { Engine } from "../../domain/backends.ts";
import { priorities, type Priority } from "../../domain/limits.ts";
import type { Catalog, Target } from "../../domain/models.ts";

/** What an engine is told goes by. */
export interface EngineContext {
  /** Those of the backends with these names, as far as they are known. */
  enginesOf: (backends: readonly string[]) => readonly Engine[];
  /** Of its key; undefined: normal. */
  priority?: Priority | undefined;
  /** What no other team, or key, can know; unset where there is no key. */
  saltOf?: (shares: "team" | "key", model: string) => string;
}

/** Members with which an operator speaks to the engine: a client's own are replaced where the gate sets them. */
const engineMembers = ["priority", "cache_salt", "extra_key"] as const;

export type EngineMembers = Readonly<Record<(typeof engineMembers)[number], RepeatedSlot>>;

/** @param most of each that is replaced */
export const createEngineMembers = (most: number): EngineMembers =>
  Object.fromEntries(engineMembers.map((name) => [name, createRepeatedSlot(most)])) as Record<
    keyof EngineMembers,
    RepeatedSlot
  >;

/** Whether the requests of any model have one. */
export const setsEngineMembers = ({ backends, models }: Catalog): boolean =>
  backends.some(({ priority }) => priority !== undefined) ||
  models.some(({ privateCache }) => privateCache !== undefined);

/**
 * Who comes first is told in integers of which normal is 0: vLLM takes the lowest first, SGLang the highest unless told
 * otherwise. What is cached under a salt is found with it alone: `cache_salt` in both, `extra_key` in SGLang before it.
 */
export function setEngineMembers(
  editor: JsonEditor,
  root: JsonSlot,
  given: EngineMembers,
  {
    target,
    catalog,
    client,
    priority = "normal",
  }: {
    target: Target;
    catalog: Catalog;
    client: EngineContext | undefined;
    priority: Priority | undefined;
  },
): void {
  const { candidates, model, rules } = target;
  const set = (name: keyof EngineMembers, json: string): void => {
    const { values } = given[name];
    for (const value of values) editor.replace(value, json);
    if (values.length === 0) editor.addMember(root, name, json);
  };
  const order = catalog.backends.find(({ name }) => name === candidates[0])?.priority;
  const above = priorities.indexOf("normal") - priorities.indexOf(priority);
  if (order !== undefined) set("priority", String(order === "high_first" ? above : -above));
  const salt = rules.privateCache && client?.saltOf?.(rules.privateCache, model?.name ?? "");
  if (salt === undefined) return;
  set("cache_salt", JSON.stringify(salt));
  const readsExtraKey = client?.enginesOf(candidates).includes("sglang") === true;
  if (readsExtraKey || given.extra_key.values.length > 0) set("extra_key", JSON.stringify(salt));
}
