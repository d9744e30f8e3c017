import type { JsonEditor } from "../json/edit.ts";
import { createRepeatedSlot, type JsonSlot, type RepeatedSlot } from "../json/slots.ts";
import { engineMembers, type MemberName } from "./members-not-allowed.ts";
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

/** At the top of a body, and in its `extra_body`, of which LiteLLM makes the top. */
type Given = readonly [top: RepeatedSlot, inExtra: RepeatedSlot];

type EngineMembers = ReadonlyMap<MemberName, Given>;

/** @param most of each that is replaced */
export const createEngineMembers = (most: number): EngineMembers =>
  new Map(engineMembers.map((name) => [name, [createRepeatedSlot(most), createRepeatedSlot(most)]]));

/** Whether the requests of any model have one, or lose their own. */
export const setsEngineMembers = ({ backends, models }: Catalog): boolean =>
  backends.some(({ priority, engineMembers: theirs }) => priority !== undefined || theirs === "drop") ||
  models.some(({ privateCache }) => privateCache !== undefined);

interface Request {
  target: Target;
  /** The backend reads what no client sent. */
  takesJson: boolean;
  client: EngineContext | undefined;
  priority: Priority | undefined;
}

/**
 * Who comes first is told in integers of which normal is 0: vLLM takes the lowest first, SGLang the highest unless told
 * otherwise. What is cached under a salt is found with it alone: `cache_salt` in both, `extra_key` in SGLang before it.
 * A client's own is replaced where the gate sets it, and dropped where a backend of the model wants none.
 */
export function setEngineMembers(
  editor: JsonEditor,
  bytes: Uint8Array<ArrayBuffer>,
  root: JsonSlot,
  given: EngineMembers,
  { backends }: Catalog,
  { target: { candidates, model, rules }, takesJson, client, priority = "normal" }: Request,
): void {
  const set = new Map<MemberName, string>();
  const order = backends.find(({ name }) => name === candidates[0])?.priority;
  const above = priorities.indexOf("normal") - priorities.indexOf(priority);
  if (order !== undefined) set.set("priority", String(order === "high_first" ? above : -above));
  const salt = rules.privateCache && client?.saltOf?.(rules.privateCache, model?.name ?? "");
  if (salt !== undefined) set.set("cache_salt", JSON.stringify(salt));
  const readsExtraKey = client?.enginesOf(candidates).includes("sglang") === true;
  const hasExtraKey = given.get("extra_key")?.some(({ values }) => values.length > 0) === true;
  if (salt !== undefined && (readsExtraKey || hasExtraKey)) set.set("extra_key", JSON.stringify(salt));
  const drops = backends.some((one) => one.engineMembers === "drop" && candidates.includes(one.name));
  const dropped = [...given].flatMap(([name, [top, inExtra]]) => {
    if (set.has(name)) return inExtra.values;
    return drops ? top.values.concat(inExtra.values) : [];
  });
  editor.removeMembers(bytes, dropped);
  for (const [name, json] of set) {
    const own = given.get(name)?.[0].values ?? [];
    for (const value of own) editor.replace(value, json);
    if (own.length === 0 && takesJson) editor.addMember(root, name, json);
  }
}
