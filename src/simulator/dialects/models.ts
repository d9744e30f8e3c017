import { type SimulatedResponse, jsonAnswer } from "../answer.ts";
import { errorAnswer } from "../errors.ts";

/** What the simulated model is like. */
export interface ModelOptions {
  /** The models that there are; a request for another gets 404, as from a real backend. None listed: any name will do. */
  models: readonly string[];
  /** Output tokens where the request sets no limit. */
  defaultOutputTokens: number;
  /** Where the model stops by itself, whatever a request allows. */
  maxOutputTokens: number;
  maxModelLen: number;
}

/** GET /v1/models and /v1/models/<model>, with the members that vLLM sends. */
export function answerModels(path: string, { models, maxModelLen }: ModelOptions): SimulatedResponse {
  const served = models.length > 0 ? models : ["simulated-model"];
  if (path === "/v1/models") {
    return jsonAnswer(200, { object: "list", data: served.map((id) => entry(id, maxModelLen)) });
  }
  const id = decodeURIComponent(path.slice("/v1/models/".length));
  if (served.includes(id)) return jsonAnswer(200, entry(id, maxModelLen));
  return errorAnswer(path, 404, `The model ${JSON.stringify(id)} does not exist.`);
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
