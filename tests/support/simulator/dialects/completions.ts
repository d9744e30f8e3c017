import { type Generation, usageOf } from "../generation.ts";
import {
  isObject,
  type Frame,
  jsonResponse,
  type SimulatedResponse,
  streamResponse,
  tick,
} from "../simulated-response.ts";
import { fullText, tokenText } from "../text.ts";
import { openAiUsage, usageMember } from "./chat.ts";

/** POST /v1/completions, with the members that vLLM sends. */
export function completionsResponse(generation: Generation): SimulatedResponse {
  const isReported = generation.usageMode === "reported";
  if (generation.body["stream"] !== true)
    return jsonResponse(200, completion(generation), usageOf(generation), isReported);
  const options = isObject(generation.body["stream_options"]) ? generation.body["stream_options"] : {};
  const reported = options["include_usage"] === true && isReported;
  const continuous = reported && options["continuous_usage_stats"] === true;
  return streamResponse(chunks(generation, reported, continuous), usageOf(generation), reported);
}

function completion(generation: Generation): unknown {
  return {
    id: `cmpl-${generation.id}`,
    object: "text_completion",
    created: generation.created,
    model: generation.model,
    choices: [
      {
        index: 0,
        text: fullText(generation),
        logprobs: null,
        finish_reason: finishReason(generation),
        stop_reason: null,
      },
    ],
    ...usageMember(generation),
  };
}

function finishReason(generation: Generation): string {
  return generation.hitsLimit ? "length" : "stop";
}

/** The finish reason is in the last token's chunk, not in a chunk of its own. */
function* chunks(generation: Generation, reported: boolean, continuous: boolean): Generator<Frame> {
  const start = `data: {"id":"cmpl-${generation.id}","object":"text_completion","created":${generation.created},"model":${JSON.stringify(generation.model)},"choices":[`;
  for (let index = 0; index < generation.outputTokens; index++) {
    yield tick;
    const finish = index === generation.outputTokens - 1 ? JSON.stringify(finishReason(generation)) : "null";
    const usage =
      generation.usageMode === "null"
        ? `,"usage":null`
        : continuous
          ? `,"usage":${openAiUsage(generation, index + 1)}`
          : "";
    yield `${start}{"index":0,"text":${JSON.stringify(tokenText(generation, index))},"logprobs":null,"finish_reason":${finish},"stop_reason":null}]${usage}}\n\n`;
  }
  if (reported) yield `${start}],"usage":${openAiUsage(generation)}}\n\n`;
  if (generation.sendsDone) yield "data: [DONE]\n\n";
}
