import { findString, indexOfBytes, latin1, isString } from "../json/bytes.ts";
import { JsonEditor } from "../json/edit.ts";
import { readJson } from "../json/read.ts";
import { createSlot, type JsonSlot } from "../json/slots.ts";
import { findDataLine } from "../stream/events.ts";
import type { EventFilter } from "../stream/filter.ts";
import type { UpstreamResponse } from "../upstream/forward.ts";
import { kindOf } from "../stream/body-kind.ts";
import { readAlready, readOrRelease } from "./pump.ts";

/** vLLM's, from renderers/params.py of 0.16 and 0.30, and serving_engine.py, serving_responses.py and processor.py of 0.10 to 0.14. */
const vllm = [
  "This model's maximum context length is # tokens. However, you requested # output tokens and your prompt contains [at least ]# input tokens, for a total of [at least ]# tokens. Please reduce the length of the input prompt or the number of requested output tokens.",
  "This model's maximum context length is # tokens. However, you requested # output tokens and your prompt contains # characters (more than # characters, which is the upper bound for # input tokens). Please reduce the length of the input prompt or the number of requested output tokens.",
  "You passed # input tokens and requested # output tokens. However, the model's context length is only # tokens, resulting in a maximum input length of # tokens. Please reduce the length of the input prompt.",
  "You passed # input characters and requested # output tokens. However, the model's context length is only # tokens, resulting in a maximum input length of # tokens (at most # characters). Please reduce the length of the input prompt.",
  "The engine prompt length # exceeds the max_model_len #. Please reduce prompt.",
  "This model's maximum context length is # tokens. However, your request has # input tokens. Please reduce the length of the input messages.",
  "'max_tokens' or 'max_completion_tokens' is too large: #. This model's maximum context length is # tokens and your request has # input tokens (# > # - #).",
  "The decoder prompt (length #) is longer than the maximum model length of #. Make sure that `max_model_len` is no smaller than the number of text tokens[ plus multimodal tokens. For image inputs, the number of image tokens depends on the number of images, and possibly their aspect ratios as well].",
];

/** What it may append to them. */
const appended = ["input_tokens", "input_text", "max_tokens"].map((name) => `[ (parameter=${name}, value=#)]`).join("");

/** How engines say that a prompt does not fit, in whole messages. `#` stands for a number, `[…]` for what may be left out. */
const wordings = [
  ...vllm.map((text) => `${text}${appended}[ None]`),
  // SGLang: tokenizer_manager.py of 0.5.23; serving_responses.py may append the last word.
  "The input (# tokens) is longer than the model's context length (# tokens).[ None]",
  "Requested token count exceeds the model's maximum context length of # tokens. You requested a total of # tokens: # tokens from the input messages and # tokens for the completion. Please reduce the number of tokens in the input messages or the completion to fit within the limit.[ None]",
  // llama.cpp: tools/server/server-context.cpp, and server.cpp before it.
  "request (# tokens) exceeds the available context size (# tokens), try increasing it",
  "input (# tokens) is larger than the max context size (# tokens). skipping",
  "the request exceeds the available context size, try increasing it",
  "the request exceeds the available context size. try increasing the context size or enable context shift",
  // TensorRT-LLM: llmapi/llm.py and executor/base_worker.py.
  "The sum of prompt length (#), query length (#) should not exceed max_num_tokens (#)",
  "The sum of prompt length (#) and query length (#) max_tokens (#) should not exceed max_seq_len (#)",
  "`default_max_tokens` (#) must be greater than 0, `default_max_tokens` (#) = max_seq_len (#) - `splited_prompt_len` (#) - `query_token_len` (#)",
  // oMLX: server.py.
  "Prompt too long: # tokens exceeds max context window of # tokens",
  // vMLX: errors.py of 1.6.81.
  "prompt_too_long: [tokenized ]prompt has # tokens, max prompt/context tokens is #",
  "prompt_too_long: tokenized prompt has # tokens; the model has a declared context of # tokens including input and output. At least one output token must remain (maximum input #). Shorten the prompt/history or use a larger-context model.",
];

const patternOf = (text: string): string =>
  RegExp.escape(text)
    .replaceAll(RegExp.escape("#"), String.raw`-?\d+(?:\.\d+)?`)
    .replaceAll(/\\\[(.*?)\\\]/g, "(?:$1)?");

const anyWording = new RegExp(`^(?:${wordings.map(patternOf).join("|")})$`);

/** By it, `/compact` of Codex (0.169) makes room, and else is refused too; opencode (1.18) knows some of these words itself. */
const code = "context_length_exceeded";

/**
 * Adds the code by which agents know that their context is full to a refusal whose whole message says so in an engine's words;
 * every other byte stays.
 * @param form of a whole response, or of the event `response.failed`
 * @returns undefined if it is no such refusal, or has the code
 */
export function markFullContext(bytes: Uint8Array, form: "body" | "event"): Uint8Array<ArrayBuffer> | undefined {
  const [object, type, message, own] = [createSlot(), createSlot(), createSlot(), createSlot()];
  const [topMessage, topCode] = [createSlot(), createSlot()];
  const error = createSlot({ members: { message, code: own } });
  const response = createSlot({ members: { error } });
  const top = { error, object, message: topMessage, code: topCode };
  const root = createSlot({ members: form === "body" ? top : { type, response } });
  if (!readJson(bytes, root) || (form === "event" && !isString(bytes, type, "response.failed"))) return undefined;
  const editor = new JsonEditor();
  const mark = (holder: JsonSlot, text: JsonSlot, given: JsonSlot): boolean => {
    if (!anyWording.test(findString(bytes, text) ?? "") || isString(bytes, given, code)) return false;
    if (given.kind === "absent") editor.addMember(holder, "code", JSON.stringify(code));
    else editor.replace(given, JSON.stringify(code));
    return true;
  };
  if (error.kind === "object") mark(error, message, own);
  // SGLang, TensorRT-LLM and older vLLM; agents look for an `error` in it.
  else if (error.kind === "absent" && isString(bytes, object, "error") && mark(root, topMessage, topCode)) {
    const text = latin1(bytes, topMessage.start, topMessage.end);
    editor.addMember(root, "error", `{"message":${text},"code":${JSON.stringify(code)}}`);
  }
  const pieces = editor.apply(bytes);
  return pieces && Buffer.concat(pieces);
}

/** A longer refusal passes as it is. */
export const maxRefusalBytes = 64 * 1024;

/** Does so with a whole response, if it is a refusal. @param onMarked called if it did */
export async function markRefusal(upstream: UpstreamResponse, onMarked: () => void): Promise<UpstreamResponse> {
  const { status, headers } = upstream.response;
  const { isJson, isPlain } = kindOf(headers.get("content-type"), headers.get("content-encoding"));
  if (status !== 400 || !isJson || !isPlain) return upstream;
  const read = await readOrRelease(upstream, maxRefusalBytes);
  const marked = read instanceof Uint8Array ? markFullContext(read, "body") : undefined;
  if (marked !== undefined) onMarked();
  return readAlready(upstream, marked ?? read);
}

const failedMark = Buffer.from("response.failed");
const hasFailed = (events: Uint8Array): boolean => indexOfBytes(events, failedMark, 0) >= 0;

/** Does the same with the event that says that a stream failed. @param onMarked called if it did */
export function fullContextFilter(onMarked: () => void): EventFilter {
  function pass(event: Uint8Array): Uint8Array {
    const line = hasFailed(event) ? findDataLine(event) : undefined;
    if (line === undefined) return event;
    const { start, end } = line;
    const marked = markFullContext(event.subarray(start, end), "event");
    if (marked === undefined) return event;
    onMarked();
    return Buffer.concat([event.subarray(0, start), marked, event.subarray(end)]);
  }
  return {
    timedChoices: undefined,
    event: (event) => [pass(event)],
    passes: (events) => !hasFailed(events),
    release: () => [],
    end: (rest) => [pass(rest)],
  };
}
