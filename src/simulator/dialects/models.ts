import { errorResponse } from "../errors.ts";
import type { ModelOptions } from "../generation.ts";
import { jsonResponse, type SimulatedResponse } from "../simulated-response.ts";

/** GET /v1/models and /v1/models/<model>, with the members that vLLM sends. */
export function modelsResponse(path: string, { models, maxModelLen }: ModelOptions): SimulatedResponse {
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
