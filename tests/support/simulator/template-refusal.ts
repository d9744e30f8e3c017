import { isObject, type JsonObject } from "./simulated-response.ts";

/**
 * What engines refuse whose chat template wants one system message, at the head, and no other roles than those that open
 * models were trained on; and whose parser of `/v1/responses` knows only functions.
 * @returns the error's sentence; undefined if nothing is refused
 */
export function findTemplateRefusal(body: JsonObject, path: string): string | undefined {
  const { messages, input, instructions, system, tools } = body;
  const turns = listOf(messages ?? input).filter(({ role }) => role !== undefined);
  const hasHead = hasText(system) || hasText(instructions);
  const last = turns.findLastIndex(({ role }) => role === "system");
  if (last > 0 || (last === 0 && hasHead)) return "System message must be at the beginning.";
  if (turns.some(({ role }) => role === "developer")) return "Unexpected message role.";
  const isRefused = path === "/v1/responses" && listOf(tools).some(({ type }) => type !== "function");
  return isRefused ? "'type' of tool must be 'function'" : undefined;
}

const hasText = (value: unknown): boolean => (Array.isArray(value) ? value.length > 0 : Boolean(value));

const listOf = (value: unknown): JsonObject[] => (Array.isArray(value) ? value.filter(isObject) : []);
