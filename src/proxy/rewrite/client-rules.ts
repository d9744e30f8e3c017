import type { JsonEditor } from "../json/edit.ts";
import { readJsonInSteps, type Steps } from "../json/read.ts";
import { createSlot, type JsonSlot } from "../json/slots.ts";
import type { Engine } from "../../domain/backends.ts";
import type { ClientRule, ClientRules } from "../../domain/models.ts";
import { type Program, programOf } from "../../domain/requests.ts";
import { type BodyRule, dropBillingLine, functionToolsOnly } from "./client-rules-members.ts";
import { createTurnSlot, developerToSystem, systemTurnsToUser, type TurnReader } from "./client-rules-turns.ts";
import type { FirstMessage } from "./conversation-slots.ts";
import type { Endpoint } from "./endpoint.ts";
import type { EngineContext } from "./engine-members.ts";

/** What `auto` goes by. */
export interface ClientContext extends EngineContext {
  userAgent: string | null;
}

interface Need {
  program: Program;
  /** Undefined: before any, known or not. */
  engines?: readonly Engine[];
  rules: readonly ClientRule[];
  source: string;
}

/** Which client needs which rule in front of which engine, whatever its version: a rule that finds nothing edits nothing. */
export const clientNeeds: readonly Need[] = [
  {
    program: "claude-cli",
    engines: ["vllm", "sglang", "llama.cpp", "ollama"],
    rules: ["drop_billing_line", "system_turns_to_user"],
    source:
      "recorded requests of 2.1.90 to 2.1.332; the prefix caches of these engines compare the prompt from its start; " +
      "vllm-project/vllm#53393 and #56520, ollama/ollama#18431",
  },
  {
    program: "codex",
    engines: ["vllm", "sglang", "llama.cpp", "ollama"],
    rules: ["developer_to_system"],
    source: "recorded requests of 0.169.0; ggml-org/llama.cpp#20156, vllm-project/vllm#49493",
  },
  {
    program: "codex",
    engines: ["vllm", "llama.cpp"],
    rules: ["function_tools_only"],
    source: "recorded requests of 0.169.0; ggml-org/llama.cpp#20156, vllm-project/vllm#49493",
  },
  {
    program: "codex",
    rules: ["full_context_code"],
    source:
      "0.169.0 in front of recorded errors: /compact makes room, as it does itself while a session has used less than a tenth " +
      "of its window; without the code each request is refused, that of /compact too",
  },
  {
    program: "opencode",
    rules: ["full_context_code"],
    source: "1.18.33 goes by the code, and by the words of some engines: it makes room and goes on",
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
  const program = programOf(client?.userAgent ?? undefined);
  if (client === undefined || program === undefined) return none;
  const engines = client.enginesOf(candidates);
  const due = clientNeeds.filter(
    (need) => need.program === program && (need.engines?.some((engine) => engines.includes(engine)) ?? true),
  );
  return due.flatMap(({ rules }) => rules);
}

export interface Mended {
  /** In the order of `rules`. */
  kinds: ClientRule[];
  /** The message at the head, if a rule made it of several. */
  first: FirstMessage | undefined;
  /** `full_context_code` is due when the response comes. */
  marksFullContext: boolean;
}

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
  const marksFullContext = due.includes("full_context_code");
  if (due.length === Number(marksFullContext)) return { kinds: [], first: undefined, marksFullContext };
  const run = developerToSystem(endpoint.turns === "input");
  const all: Partial<Record<ClientRule, TurnReader | BodyRule>> = {
    system_turns_to_user: systemTurnsToUser(),
    developer_to_system: run,
    drop_billing_line: dropBillingLine(),
    function_tools_only: functionToolsOnly(),
  };
  const members: Record<string, JsonSlot> = {};
  const readers: TurnReader[] = [];
  for (const one of due.flatMap((rule) => all[rule] ?? [])) {
    if ("slot" in one) members[one.member] = one.slot;
    else readers.push(one);
  }
  if (endpoint.turns !== undefined && readers.length > 0) members[endpoint.turns] = createTurnSlot(readers);
  yield* readJsonInSteps(bytes, createSlot({ members }));

  const kinds: ClientRule[] = [];
  for (const rule of due) {
    const before = editor.edits.length;
    all[rule]?.edit(editor, bytes);
    if (editor.edits.length > before) kinds.push(rule);
  }
  return { kinds, first: due.includes("developer_to_system") ? run.findJoined() : undefined, marksFullContext };
}
