// What a simulated model responds in each API, and what simulated GPUs read: for the demo and the tests.
//
// It keeps true: it shares no code with what it tests, but the nouns of `domain`; responses have the members that real
// engines send. It opens no socket and breaks nothing off: whoever serves its responses does (`demo/backend.ts`, and
// the scripted backend of the tests). Removed: sockets, scripts and recordings, which only the tests need and have now.

import { chatResponse } from "./dialects/chat.ts";
import { completionsResponse } from "./dialects/completions.ts";
import { embeddingsResponse } from "./dialects/embeddings.ts";
import { countTokensResponse, messagesResponse } from "./dialects/messages.ts";
import { compactionResponse, responsesResponse } from "./dialects/responses.ts";
import { errorResponse, isObject, type SimulatedResponse, jsonResponse } from "./simulated-response.ts";
import { findLimit, type Generation, type ModelOptions, planGeneration, type Wanted } from "./generation.ts";

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

/** @returns the response of a healthy backend; undefined if the model has no such endpoint */
export function respond(
  request: {
    method: string;
    path: string;
    /** The body; undefined if it is not JSON. */
    json: () => unknown;
  },
  wanted: Wanted,
  options: ModelOptions,
): SimulatedResponse | undefined {
  const { method, path } = request;
  if (path === "/v1/models" || path.startsWith("/v1/models/")) return modelsResponse(path, options);
  const endpoint = endpoints[path];
  if (endpoint === undefined || method !== "POST") return undefined;
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
  return endpoint(planGeneration(body, model, wanted, options));
}

/** GET /v1/models and /v1/models/<model>, with the members that vLLM sends. */
function modelsResponse(path: string, { models, maxModelLen }: ModelOptions): SimulatedResponse {
  const served = models.length > 0 ? models : ["simulated-model"];
  if (path === "/v1/models") {
    return jsonResponse(200, { object: "list", data: served.map((id) => entry(id, maxModelLen)) });
  }
  const id = decodeURIComponent(path.slice("/v1/models/".length));
  if (served.includes(id)) return jsonResponse(200, entry(id, maxModelLen));
  return errorResponse(path, 404, `The model ${JSON.stringify(id)} does not exist.`);
}

function entry(id: string, maxModelLen: number): unknown {
  return {
    id,
    object: "model",
    created: 1_767_225_600,
    owned_by: "vllm",
    root: id,
    parent: null,
    max_model_len: maxModelLen,
  };
}
