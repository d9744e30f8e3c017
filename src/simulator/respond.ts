import { randomUUID } from "node:crypto";
import { type SimulatedResponse, isObject, type Job, type JsonObject } from "./answer.ts";
import { answerChat } from "./dialects/chat.ts";
import { answerCompletions } from "./dialects/completions.ts";
import { answerCountTokens, answerMessages } from "./dialects/messages.ts";
import { answerEmbeddings } from "./dialects/embeddings.ts";
import { echo } from "./dialects/echo.ts";
import { answerModels, type ModelOptions } from "./dialects/models.ts";
import { answerResponses } from "./dialects/responses.ts";
import { errorAnswer } from "./errors.ts";
import type { SimulatedRequest } from "./request.ts";
import type { Script } from "./script.ts";
import { countTokens } from "./text.ts";

/** Whether the path is one whose body is parsed. */
export function readsBody(path: string): boolean {
  return Object.hasOwn(endpoints, path);
}

const endpoints: Readonly<Record<string, (job: Job) => SimulatedResponse>> = {
  "/v1/chat/completions": answerChat,
  "/v1/completions": answerCompletions,
  "/v1/embeddings": answerEmbeddings,
  "/v1/responses": answerResponses,
  "/v1/messages": answerMessages,
  "/v1/messages/count_tokens": answerCountTokens,
};

/** What a healthy backend answers; the script may have changed what it says, not yet how it is sent. */
export function respond(request: SimulatedRequest, script: Script, options: ModelOptions): SimulatedResponse {
  const { path } = request;
  if (script.problem !== undefined) return errorAnswer(path, 400, script.problem);
  if (script.redirect === true) return { ...emptyAnswer(307), headers: [["location", "/v1/elsewhere"]] };
  if (script.status !== undefined && (script.status < 200 || script.status >= 300)) return failure(path, script.status);
  const answer = healthyAnswer(request, script, options);
  return script.status === undefined ? answer : { ...answer, status: script.status };
}

function failure(path: string, status: number): SimulatedResponse {
  if (status < 400) return emptyAnswer(status);
  return errorAnswer(path, status, `Simulated status ${status}`);
}

function emptyAnswer(status: number): SimulatedResponse {
  return { status, headers: [], body: "", usage: undefined, usageReported: false };
}

function healthyAnswer(request: SimulatedRequest, script: Script, options: ModelOptions): SimulatedResponse {
  const { method, path } = request;
  if (path === "/v1/models" || path.startsWith("/v1/models/")) return answerModels(path, options);
  const endpoint = endpoints[path];
  if (endpoint === undefined || method !== "POST") return echo(request);
  const body = request.json();
  if (!isObject(body)) return errorAnswer(path, 400, "The body is not a JSON object");
  const { model } = body;
  if (typeof model !== "string" || (options.models.length > 0 && !options.models.includes(model))) {
    return errorAnswer(path, 404, `The model ${JSON.stringify(model)} does not exist.`);
  }
  const limit = limitOf(body);
  if (limit !== undefined && !(Number.isInteger(limit) && limit > 0)) {
    return errorAnswer(path, 400, `max_tokens must be at least 1, got ${limit}.`);
  }
  return endpoint(jobOf(body, model, script, options));
}

function jobOf(body: JsonObject, model: string, script: Script, options: ModelOptions): Job {
  const limit = script.tokens ?? limitOf(body);
  const endless = script.flood === true && body["stream"] === true;
  const outputTokens = endless ? Infinity : Math.min(limit ?? options.defaultOutputTokens, options.maxOutputTokens);
  return {
    body,
    model,
    id: randomUUID().replaceAll("-", ""),
    created: Math.floor(Date.now() / 1000),
    inputTokens: Math.max(1, countTokens(promptMembers.map((name) => body[name]))),
    outputTokens,
    thinkTokens: thinkTokens(body, outputTokens),
    hugeTokenBytes: script.hugeTokenBytes,
    cutShort: limit === outputTokens,
    usage: script.usage,
    usageMode: script.usageMode ?? "told",
    done: script.noDone !== true,
  };
}

const promptMembers = ["messages", "prompt", "input", "system", "instructions", "tools"];

function limitOf(body: JsonObject): number | undefined {
  const limit = body["max_completion_tokens"] ?? body["max_tokens"] ?? body["max_output_tokens"];
  return typeof limit === "number" ? limit : undefined;
}

/** Half of the answer, three quarters of it at maximum effort, and no more than the budget where the request names one. */
function thinkTokens(body: JsonObject, outputTokens: number): number {
  const template = isObject(body["chat_template_kwargs"]) ? body["chat_template_kwargs"] : {};
  if ((template["thinking"] ?? template["enable_thinking"]) !== true || outputTokens < 4) return 0;
  const share = template["reasoning_effort"] === "max" ? 0.75 : 0.5;
  const budget = isObject(body["thinking"]) ? body["thinking"]["budget_tokens"] : undefined;
  return Math.max(2, Math.min(Math.floor(outputTokens * share), typeof budget === "number" ? budget : Infinity));
}
