import { type SimulatedResponse, jsonAnswer } from "./answer.ts";

const types: Readonly<Record<number, [openAi: string, messages: string]>> = {
  400: ["BadRequestError", "invalid_request_error"],
  401: ["AuthenticationError", "authentication_error"],
  404: ["NotFoundError", "not_found_error"],
  429: ["RateLimitError", "rate_limit_error"],
  529: ["OverloadedError", "overloaded_error"],
};

/** A refusal in the words of the API that the path belongs to. */
export function errorAnswer(path: string, status: number, message: string): SimulatedResponse {
  const [openAiType, messagesType] = types[status] ?? ["InternalServerError", "api_error"];
  if (path.startsWith("/v1/messages")) {
    return jsonAnswer(status, { type: "error", error: { type: messagesType, message } });
  }
  return jsonAnswer(status, { error: { message, type: openAiType, param: null, code: status } });
}
