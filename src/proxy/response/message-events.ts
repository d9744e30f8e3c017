import { parseJson } from "../../domain/json.ts";
import { isObject } from "../usage/event-usage.ts";
import { event } from "./dialect.ts";

type Members = Readonly<Record<string, unknown>>;

/**
 * The events that a stream of `/v1/messages` would have had, made of a whole message: its clients know no other.
 * @returns undefined if it is not a message
 */
export function eventsOfMessage(json: string): string | undefined {
  const message = parseJson(json);
  if (!isObject(message) || message["type"] !== "message" || !Array.isArray(message["content"])) return undefined;
  const { content, stop_reason, stop_sequence = null, usage = {}, ...head } = message;
  const opening = { ...head, content: [], stop_reason: null, stop_sequence: null, usage };
  return [
    event({ type: "message_start", message: opening }),
    ...(content as unknown[]).flatMap((block, index) => eventsOfBlock(isObject(block) ? block : {}, index)),
    event({ type: "message_delta", delta: { stop_reason, stop_sequence }, usage }),
    event({ type: "message_stop" }),
  ].join("");
}

function eventsOfBlock(block: Members, index: number): string[] {
  const { start, deltas } = splitBlock(block);
  return [
    event({ type: "content_block_start", index, content_block: start }),
    ...deltas.map((delta) => event({ type: "content_block_delta", index, delta })),
    event({ type: "content_block_stop", index }),
  ];
}

/** What a block begins as, and what is added to it. Clients take a block of another kind as it begins. */
function splitBlock(block: Members): { start: Members; deltas: Members[] } {
  const { type, text, thinking, signature, input } = block;
  if (type === "text") return { start: { ...block, text: "" }, deltas: [{ type: "text_delta", text }] };
  if (type === "thinking") {
    const signed = signature === undefined ? [] : [{ type: "signature_delta", signature }];
    return {
      start: { ...block, thinking: "", signature: "" },
      deltas: [{ type: "thinking_delta", thinking }, ...signed],
    };
  }
  if (typeof type === "string" && type.endsWith("tool_use"))
    return {
      start: { ...block, input: {} },
      deltas: [{ type: "input_json_delta", partial_json: JSON.stringify(input ?? {}) }],
    };
  return { start: block, deltas: [] };
}
