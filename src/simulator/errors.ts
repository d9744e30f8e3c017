import { jsonResponse, type SimulatedResponse } from "./simulated-response.ts";

const types: Readonly<Record<number, [openAi: string, messages: string]>> = {
  400: ["BadRequestError", "invalid_request_error"],
  401: ["AuthenticationError", "authentication_error"],
  404: ["NotFoundError", "not_found_error"],
  429: ["RateLimitError", "rate_limit_error"],
  529: ["OverloadedError", "overloaded_error"],
};

/** An error in the format of the API that the path belongs to. */
export function errorResponse(path: string, status: number, message: string): SimulatedResponse {
  const [openAiType, messagesType] = types[status] ?? ["InternalServerError", "api_error"];
  if (path.startsWith("/v1/messages")) {
    return jsonResponse(status, { type: "error", error: { type: messagesType, message } });
  }
  return jsonResponse(status, { error: { message, type: openAiType, param: null, code: status } });
}
