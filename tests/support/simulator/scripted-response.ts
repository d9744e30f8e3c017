import { respond } from "./endpoints.ts";
import { errorResponse, isObject, type SimulatedResponse } from "./simulated-response.ts";
import type { ModelOptions } from "./generation.ts";
import { echoResponse } from "./echo.ts";
import type { SimulatedRequest } from "./request.ts";
import type { Script } from "./script.ts";
import { findTemplateRefusal } from "./template-refusal.ts";

export interface ScriptedModel extends ModelOptions {
  /** Refuses what strict chat templates refuse. */
  isStrict: boolean;
  /** Refuses longer bodies, as SGLang does whose context is full. */
  contextBytes?: number;
  /** It says so in the stream of a response, as vLLM does. */
  isFullInStream?: boolean;
}

/** The backend's response with the contents that the script demands; how it is sent is decided later. */
export function scriptedResponse(request: SimulatedRequest, script: Script, model: ScriptedModel): SimulatedResponse {
  const { path } = request;
  const { status } = script;
  if (script.problem !== undefined) return errorResponse(path, 400, script.problem);
  const size = request.body().length;
  if (model.contextBytes !== undefined && size > model.contextBytes) {
    return fullContext(size, model.contextBytes, model.isFullInStream === true);
  }
  if (script.redirect === true) return { ...emptyResponse(307), headers: [["location", "/v1/elsewhere"]] };
  if (status !== undefined && status >= 400) return errorResponse(path, status, `Simulated status ${status}`);
  if (status !== undefined && (status < 200 || status >= 300)) return emptyResponse(status);
  const response = respond(request, script, model) ?? echoResponse(request);
  const body = script.strict === true || model.isStrict ? request.json() : undefined;
  const refusal = response.status === 200 && isObject(body) ? findTemplateRefusal(body, path) : undefined;
  if (refusal !== undefined) return errorResponse(path, 400, refusal);
  return status === undefined ? response : { ...response, status };
}

function fullContext(size: number, most: number, isInStream: boolean): SimulatedResponse {
  const message = `The input (${size} tokens) is longer than the model's context length (${most} tokens).`;
  if (isInStream) {
    const response = { id: "response", status: "failed", error: { code: "server_error", message } };
    const event = `event: response.failed\ndata: ${JSON.stringify({ type: "response.failed", response })}\n\n`;
    return { ...emptyResponse(200, event), headers: [["content-type", "text/event-stream"]] };
  }
  const body = JSON.stringify({ object: "error", message, type: "BadRequestError", param: null, code: 400 });
  return { ...emptyResponse(400, body), headers: [["content-type", "application/json"]] };
}

const emptyResponse = (status: number, body = ""): SimulatedResponse => ({
  status,
  headers: [],
  body,
  usage: undefined,
  usageReported: false,
});
