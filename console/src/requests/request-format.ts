import type { Outcome } from "../../../src/domain/requests.ts";

const outcomeLabels: Readonly<Record<Outcome, string>> = {
  completed: "Completed",
  client_left: "Client left",
  shutdown: "Ended by a shutdown",
  upstream_failed: "Backend failed",
  timed_out: "Timed out",
  refused: "Refused",
  limited: "Refused by a limit",
  revoked: "Ended with its key",
  ended_by_admin: "Ended in the console",
};

const labels: Readonly<Record<string, string>> = outcomeLabels;

/** The API may name an outcome that this version of the console does not know. */
export const outcomeLabel = (outcome: string): string => labels[outcome] ?? outcome;

/** `400 unsupported_model`, `200 Client left`; only the status if nothing went wrong. */
export function resultLabel({ status, outcome, code, cause }: Result): string {
  if (outcome === "completed" && status < 400) return String(status);
  const reason = code ?? cause ?? (outcome === "completed" ? undefined : outcomeLabel(outcome));
  return reason === undefined ? String(status) : `${status} ${reason}`;
}

interface Result {
  status: number;
  outcome: string;
  code: string | null;
  cause: string | null;
}

/** A client that leaves, and a request that was refused, are not failures of the server. */
export function resultTone({ status, outcome }: Pick<Result, "status" | "outcome">): "good" | "warn" | "bad" {
  if (outcome === "completed" && status < 400) return "good";
  if (status >= 500 || outcome === "upstream_failed" || outcome === "timed_out") return "bad";
  return "warn";
}

const changeLabels: Readonly<Record<string, string>> = {
  model: "Model name",
  max_tokens: "Token limit",
  system_prompt_effort: "System prompt for the effort",
  system_prompt_language: "System prompt for the language",
  thinking: "Thinking mode",
  stream_usage: "Usage requested from the backend",
};

export const changeLabel = (change: string): string => changeLabels[change] ?? change;
