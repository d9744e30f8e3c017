import { chatResponse } from "./dialects/chat.ts";
import { completionsResponse } from "./dialects/completions.ts";
import { echoResponse } from "./dialects/echo.ts";
import { embeddingsResponse } from "./dialects/embeddings.ts";
import { countTokensResponse, messagesResponse } from "./dialects/messages.ts";
import { modelsResponse } from "./dialects/models.ts";
import { compactionResponse, responsesResponse } from "./dialects/responses.ts";
import { errorResponse } from "./errors.ts";
import { findTemplateRefusal } from "./template-refusal.ts";
import { findLimit, type Generation, type ModelOptions, planGeneration } from "./generation.ts";
import { isObject } from "./json-object.ts";
import type { SimulatedRequest } from "./request.ts";
import type { Script } from "./script.ts";
import type { SimulatedResponse } from "./simulated-response.ts";

const endpoints: Readonly<Record<string, (generation: Generation) => SimulatedResponse>> = {
  "/v1/chat/completions": chatResponse,
  "/v1/completions": completionsResponse,
  "/v1/embeddings": embeddingsResponse,
  "/v1/responses": responsesResponse,
  "/v1/responses/compact": compactionResponse,
  "/v1/messages": messagesResponse,
  "/v1/messages/count_tokens": countTokensResponse,
};

/** Whether the body of a request to this path is parsed. */
export function parsesBody(path: string): boolean {
  return Object.hasOwn(endpoints, path);
}

/** The response of a healthy backend. The script may change its contents here; how it is sent is decided later. */
export function respond(request: SimulatedRequest, script: Script, options: ModelOptions): SimulatedResponse {
  const { path } = request;
  if (script.problem !== undefined) return errorResponse(path, 400, script.problem);
  if (script.redirect === true) return { ...emptyResponse(307), headers: [["location", "/v1/elsewhere"]] };
  if (script.status !== undefined && (script.status < 200 || script.status >= 300)) {
    return statusResponse(path, script.status);
  }
  const response = healthyResponse(request, script, options);
  return script.status === undefined ? response : { ...response, status: script.status };
}

function statusResponse(path: string, status: number): SimulatedResponse {
  if (status < 400) return emptyResponse(status);
  return errorResponse(path, status, `Simulated status ${status}`);
}

function emptyResponse(status: number): SimulatedResponse {
  return { status, headers: [], body: "", usage: undefined, usageReported: false };
}

function healthyResponse(request: SimulatedRequest, script: Script, options: ModelOptions): SimulatedResponse {
  const { method, path } = request;
  if (path === "/v1/models" || path.startsWith("/v1/models/")) return modelsResponse(path, options);
  const endpoint = endpoints[path];
  if (endpoint === undefined || method !== "POST") return echoResponse(request);
  const body = request.json();
  if (!isObject(body)) return errorResponse(path, 400, "The body is not a JSON object");
  const { model } = body;
  if (model === undefined) return errorResponse(path, 400, "The body has no model");
  if (typeof model !== "string" || (options.models.length > 0 && !options.models.includes(model))) {
    return errorResponse(path, 404, `The model ${JSON.stringify(model)} does not exist.`);
  }
  const limit = findLimit(body);
  if (limit !== undefined && !(Number.isInteger(limit) && limit > 0)) {
    return errorResponse(path, 400, `max_tokens must be at least 1, got ${limit}.`);
  }
  const refusal = script.strict === true || options.isStrict ? findTemplateRefusal(body, path) : undefined;
  if (refusal !== undefined) return errorResponse(path, 400, refusal);
  return endpoint(planGeneration(body, model, script, options));
}
