import { readdirSync, readFileSync } from "node:fs";

/** What real clients sent, and what engines make of it. */

export type Json = Record<string, unknown>;

export interface Recording {
  program: string;
  /** The real program sent these, with other texts and without the schemas of tools. */
  requests: { path: string; userAgent: string; body: Json }[];
}

const folder = `${import.meta.dir}/../fixtures/client-requests`;
export const recordings: readonly Recording[] = readdirSync(folder).map(
  (name) => JSON.parse(readFileSync(`${folder}/${name}`, "utf8")) as Recording,
);

export const list = (value: unknown): Json[] => (Array.isArray(value) ? (value as Json[]) : []);
const rolesOf = (turns: unknown): unknown[] => list(turns).map(({ role }) => role);

/** What strict templates, llama.cpp and vLLM refuse. */
export function refusalOf({ messages, input, tools, system }: Json, isResponses: boolean): string | undefined {
  const roles = rolesOf(messages ?? input).filter((role) => role !== undefined);
  if (roles.lastIndexOf("system") > (system === undefined ? 0 : -1)) return "System message must be at the beginning";
  if (roles.includes("developer")) return "Unexpected message role";
  const isRefused = isResponses && list(tools).some(({ type }) => type !== "function");
  return isRefused ? "'type' of tool must be 'function'" : undefined;
}

/** As engines do that have system turns at the head only. */
export function render({ system, messages, input, tools }: Json): string {
  const turns = list(messages ?? input);
  const isHead = ({ role }: Json): boolean => role === "system" || role === "developer";
  const head = [...list(system), ...turns.filter(isHead)];
  const instructions = head.map(({ text, content }) => textsOf(text ?? content)).join("\n");
  const others = turns.filter((turn) => !isHead(turn));
  const texts = others.map(({ content, ...turn }) => `${JSON.stringify(turn)} ${textsOf(content)}`);
  return [instructions, JSON.stringify(tools), ...texts].join("\n");
}

/** Templates take the texts out of their blocks, and ignore where the client wants a cache to end. */
function textsOf(content: unknown): string {
  if (!Array.isArray(content)) return String(content);
  const blockText = (block: Json): string =>
    typeof block["text"] === "string" ? block["text"] : JSON.stringify(Object.assign({}, block, { cache_control: 0 }));
  return list(content).map(blockText).join("\n");
}

const words = (seed: number, count: number): string =>
  Array.from({ length: count }, (_, index) => ((seed * 7919 + index * 104_729) % 9973).toString(36)).join(" ");

/** The recordings have a hash and a length instead of each long text: a text of that length, which the hash tells apart. */
export const withTexts = (json: string): string =>
  json.replaceAll(/(?:Text|Reminder) ([\da-f]{8}) of (\d+) characters\./g, (_, hash: string, length: string) =>
    words(Number.parseInt(hash, 16) % 1_000_003, Number(length)).slice(0, Number(length)),
  );
