import { isObject, type JsonObject } from "./simulated-response.ts";

export interface ToolCall {
  name: string;
  /** JSON text. */
  arguments: string;
  /** The same text as a stream sends it, one piece per token. */
  pieces: readonly string[];
}

/**
 * The call that a model would make: the tool that the request names, else the first one. undefined if the request
 * offers no tool, forbids them or brings a tool's result.
 */
export function findToolCall(body: JsonObject): ToolCall | undefined {
  const choice = body["tool_choice"];
  const tools = Array.isArray(body["tools"]) ? body["tools"].map(readTool) : [];
  if (choice === "none" || (isObject(choice) && choice["type"] === "none") || bringsToolResult(body)) return undefined;
  const wanted = isObject(choice) ? readTool(choice)?.name : undefined;
  const tool = tools.find(
    (candidate) => candidate !== undefined && (wanted === undefined || candidate.name === wanted),
  );
  if (tool === undefined) return undefined;
  const text = JSON.stringify(sampleOf(tool.schema));
  return { name: tool.name, arguments: text, pieces: text.match(/.{1,8}/gsu) ?? [text] };
}

/** Chat completions wrap a tool in `function`; the responses and messages APIs do not. */
function readTool(tool: unknown): { name: string; schema: unknown } | undefined {
  if (!isObject(tool)) return undefined;
  const inner = isObject(tool["function"]) ? tool["function"] : tool;
  if (typeof inner["name"] !== "string") return undefined;
  return { name: inner["name"], schema: inner["parameters"] ?? inner["input_schema"] };
}

function bringsToolResult(body: JsonObject): boolean {
  const turns = body["messages"] ?? body["input"];
  const last: unknown = Array.isArray(turns) ? turns.at(-1) : undefined;
  if (!isObject(last)) return false;
  const blocks = Array.isArray(last["content"]) ? last["content"] : [];
  return (
    last["role"] === "tool" ||
    last["type"] === "function_call_output" ||
    blocks.some((block) => isObject(block) && block["type"] === "tool_result")
  );
}

/** A value that satisfies a common JSON Schema. */
function sampleOf(schema: unknown): unknown {
  if (!isObject(schema)) return {};
  if (Array.isArray(schema["enum"])) return schema["enum"][0];
  switch (schema["type"]) {
    case "string":
      return "Seoul";
    case "integer":
    case "number":
      return 7;
    case "boolean":
      return true;
    case "array":
      return [sampleOf(schema["items"])];
    default: {
      const properties = isObject(schema["properties"]) ? schema["properties"] : {};
      return Object.fromEntries(Object.entries(properties).map(([name, member]) => [name, sampleOf(member)]));
    }
  }
}
