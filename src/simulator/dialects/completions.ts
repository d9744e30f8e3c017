import {
  type SimulatedResponse,
  tick,
  eventStream,
  type Frame,
  isObject,
  type Job,
  jsonAnswer,
  usageOf,
} from "../answer.ts";
import { fullText, tokenText } from "../text.ts";
import { openAiUsage, usageMember } from "./openai-usage.ts";

/** POST /v1/completions, with the members that vLLM sends. */
export function answerCompletions(job: Job): SimulatedResponse {
  const told = job.usageMode === "told";
  if (job.body["stream"] !== true) return jsonAnswer(200, completion(job), usageOf(job), told);
  const options = isObject(job.body["stream_options"]) ? job.body["stream_options"] : {};
  const reported = options["include_usage"] === true && told;
  const continuous = reported && options["continuous_usage_stats"] === true;
  return eventStream(chunks(job, reported, continuous), usageOf(job), reported);
}

function completion(job: Job): unknown {
  return {
    id: `cmpl-${job.id}`,
    object: "text_completion",
    created: job.created,
    model: job.model,
    choices: [{ index: 0, text: fullText(job), logprobs: null, finish_reason: finishReason(job), stop_reason: null }],
    ...usageMember(job),
  };
}

function finishReason(job: Job): string {
  return job.cutShort ? "length" : "stop";
}

/** The last token's chunk has the finish reason; there is no chunk of its own for it. */
function* chunks(job: Job, reported: boolean, continuous: boolean): Generator<Frame> {
  const start = `data: {"id":"cmpl-${job.id}","object":"text_completion","created":${job.created},"model":${JSON.stringify(job.model)},"choices":[`;
  for (let index = 0; index < job.outputTokens; index++) {
    yield tick;
    const finish = index === job.outputTokens - 1 ? JSON.stringify(finishReason(job)) : "null";
    const usage =
      job.usageMode === "null" ? `,"usage":null` : continuous ? `,"usage":${openAiUsage(job, index + 1)}` : "";
    yield `${start}{"index":0,"text":${JSON.stringify(tokenText(job, index))},"logprobs":null,"finish_reason":${finish},"stop_reason":null}]${usage}}\n\n`;
  }
  if (reported) yield `${start}],"usage":${openAiUsage(job)}}\n\n`;
  if (job.done) yield "data: [DONE]\n\n";
}
