import { setsEngineMembers } from "./engine-members.ts";
import type { JsonEditor } from "../json/edit.ts";
import type { KnownBlocks } from "../json/known-blocks.ts";
import type { JsonSlot } from "../json/slots.ts";
import type { Catalog, ModelRules } from "../../domain/models.ts";
import type { Recall } from "./language.ts";
import type { ModelNames } from "./model-names.ts";

/** What holds for the requests of all models, and how the rules of each are found. */
export interface RewriteRules {
  readonly names: ModelNames;
  /** One of `streamUsages`. */
  readonly streamUsage: Readonly<Record<ForceUsage, ForceUsage>>;
  /** They are for keys with limits of tokens or models: how many texts a body asks for is read, and what goes round these. */
  readonly hasKeyRules: boolean;
  /** The backends that are llama.cpp, as far as is known. */
  readonly timed?: ReadonlySet<string> | undefined;
  /** Undefined: each text is read anew. */
  readonly recall?: Recall | undefined;
  /** Undefined: each body is read anew. */
  readonly knownBlocks?: KnownBlocks | undefined;
}

type ForceUsage = ModelRules["forceStreamUsage"];

/** What usage is requested of streams, by what the rules of a model say: the same, at least at their end, or none. */
export const streamUsages = {
  asSet: { off: "off", final: "final", continuous: "continuous" },
  required: { off: "final", final: "final", continuous: "continuous" },
  unasked: { off: "off", final: "off", continuous: "off" },
} as const satisfies Record<string, Record<ForceUsage, ForceUsage>>;

export type BodyNeeds = ReturnType<typeof needsOf>;

/** Which members of a body the rules of any model may read. */
export function needsOf(rules: RewriteRules) {
  const { models, otherModels, backends }: Catalog = rules.names.catalog;
  const all = [...models, otherModels];
  return {
    streamOptions: all.some((one) => rules.streamUsage[one.forceStreamUsage] !== "off"),
    reasoning: all.some(({ reasoning }) => reasoning),
    hanGuard: all.some(({ hanGuard }) => hanGuard),
    keyRules: rules.hasKeyRules,
    /** There are backends to choose from, of which one may have cached the opening. */
    opening: backends.length > 1 || backends.some(({ maxPrefillTokens }) => maxPrefillTokens !== undefined),
    engineMembers: setsEngineMembers(rules.names.catalog),
  };
}

/** A client rule about one member of a body: what it watches, and what it makes of it. */
export interface BodyRule {
  member: "system" | "tools";
  slot: JsonSlot;
  edit: (editor: JsonEditor, bytes: Uint8Array) => void;
}
