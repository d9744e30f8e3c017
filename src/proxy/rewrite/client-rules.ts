import type { JsonEditor } from "../json/edit.ts";
import { readJsonInSteps, type Steps } from "../json/read.ts";
import { createSlot, type JsonSlot } from "../json/slots.ts";
import type { Engine } from "../../domain/backends.ts";
import type { ClientRule, ClientRules } from "../../domain/models.ts";
import { dropBillingLine, functionToolsOnly } from "./client-rules-members.ts";
import { createTurnSlot, developerToSystem, systemTurnsToUser, type TurnReader } from "./client-rules-turns.ts";
import type { FirstMessage } from "./conversation-slots.ts";
import type { Endpoint } from "./endpoint.ts";
import type { BodyRule } from "./rules.ts";

/** What `auto` goes by. */
export interface ClientContext {
  userAgent: string | null;
  /** Those of the backends with these names, as far as they are known. */
  enginesOf: (backends: readonly string[]) => readonly Engine[];
}

interface Need {
  /** How the User-Agent of the program begins. */
  program: string;
  /** The oldest version that was seen to need them. Later ones that do not are not edited: the rules find nothing. */
  since: readonly [number, number, number];
  engines: readonly Engine[];
  rules: readonly ClientRule[];
  source: string;
}

/** Which client needs which rule in front of which engine. */
export const clientNeeds: readonly Need[] = [
  {
    program: "claude-cli",
    since: [2, 1, 90],
    engines: ["vllm", "sglang", "llama.cpp", "ollama"],
    rules: ["drop_billing_line"],
    source:
      "recorded requests of 2.1.90 to 2.1.332; the prefix caches of these engines compare the prompt from its start",
  },
  {
    program: "claude-cli",
    since: [2, 1, 178],
    engines: ["vllm", "sglang", "llama.cpp", "ollama"],
    rules: ["system_turns_to_user"],
    source: "recorded requests of 2.1.178 to 2.1.332; vllm-project/vllm#53393 and #56520, ollama/ollama#18431",
  },
  {
    program: "codex",
    since: [0, 169, 0],
    engines: ["vllm", "sglang", "llama.cpp", "ollama"],
    rules: ["developer_to_system"],
    source: "recorded requests of 0.169.0; ggml-org/llama.cpp#20156, vllm-project/vllm#49493",
  },
  {
    program: "codex",
    since: [0, 169, 0],
    engines: ["vllm", "llama.cpp"],
    rules: ["function_tools_only"],
    source: "recorded requests of 0.169.0; ggml-org/llama.cpp#20156, vllm-project/vllm#49493",
  },
];

const none: readonly ClientRule[] = [];

/**
 * The rules for one request.
 * @param candidates the names of the backends that may get it
 */
export function chooseClientRules(
  setting: ClientRules,
  client: ClientContext | undefined,
  candidates: readonly string[],
): readonly ClientRule[] {
  if (setting !== "auto") return setting;
  if (client === undefined || client.userAgent === null) return none;
  const { userAgent } = client;
  const engines = client.enginesOf(candidates);
  const due = clientNeeds.filter(
    (need) =>
      userAgent.startsWith(need.program) &&
      isSince(userAgent, need.since) &&
      need.engines.some((engine) => engines.includes(engine)),
  );
  return due.flatMap(({ rules }) => rules);
}

/** `claude-cli/2.1.330 (external, cli)`. */
const versionOf = /^[^/ ]{1,40}\/(\d{1,9})\.(\d{1,9})\.(\d{1,9})/;

function isSince(userAgent: string, since: Need["since"]): boolean {
  const version = versionOf.exec(userAgent)?.slice(1).map(Number);
  if (version === undefined) return false;
  for (const [index, least] of since.entries()) {
    const given = version[index] ?? 0;
    if (given !== least) return given > least;
  }
  return true;
}

export interface Mended {
  /** In the order of `rules`. */
  kinds: ClientRule[];
  /** The message at the head, if a rule made it of several. */
  first: FirstMessage | undefined;
}

const nothing: Mended = { kinds: [], first: undefined };

/**
 * Applies client rules. They read the body once more, with slots of their own, so that they cost nothing where none is due.
 * Each changes only what its description names, needs memory for what it changes alone, and changes nothing in its own
 * result.
 * @param bytes a JSON object
 */
export function* mendInSteps(
  editor: JsonEditor,
  bytes: Uint8Array,
  endpoint: Endpoint,
  rules: readonly ClientRule[],
): Steps<Mended> {
  const due = endpoint.clientRules.filter((rule) => rules.includes(rule));
  if (due.length === 0) return nothing;
  const run = developerToSystem(endpoint.turns === "input");
  const readers: Partial<Record<ClientRule, TurnReader>> = {
    system_turns_to_user: systemTurnsToUser(),
    developer_to_system: run,
  };
  const bodyRules: Partial<Record<ClientRule, BodyRule>> = {
    drop_billing_line: dropBillingLine(),
    function_tools_only: functionToolsOnly(),
  };
  const members: Record<string, JsonSlot> = {};
  const turnReaders = due.flatMap((rule) => readers[rule] ?? []);
  if (endpoint.turns !== undefined && turnReaders.length > 0) members[endpoint.turns] = createTurnSlot(turnReaders);
  for (const { member, slot } of due.flatMap((rule) => bodyRules[rule] ?? [])) members[member] = slot;
  yield* readJsonInSteps(bytes, createSlot({ members }));

  const kinds: ClientRule[] = [];
  for (const rule of due) {
    const before = editor.edits.length;
    (readers[rule] ?? bodyRules[rule])?.edit(editor, bytes);
    if (editor.edits.length > before) kinds.push(rule);
  }
  return { kinds, first: due.includes("developer_to_system") ? run.findJoined() : undefined };
}
