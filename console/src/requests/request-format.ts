import type { ChoiceReason } from "../../../src/domain/backends.ts";
import type { CacheLoss } from "../../../src/domain/cache-loss.ts";
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

/** The paragraph of the handbook that tells why, for those that somebody may want to mend. */
const outcomeHelps: Readonly<Record<string, string>> = {
  upstream_failed: "watching#when-the-backend-is-out",
  timed_out: "watching#when-the-backend-is-out",
  refused: "api#errors",
  limited: "keys-and-limits#what-a-refused-client-hears",
} satisfies Partial<Record<Outcome, string>>;

export const outcomeHelp = (outcome: string): string | undefined => outcomeHelps[outcome];

/** The colour of each outcome in every chart. `completed` is an error response of the backend. */
const outcomeColours: Readonly<Record<Outcome, number>> = {
  completed: 6,
  upstream_failed: 3,
  timed_out: 4,
  refused: 8,
  limited: 2,
  shutdown: 1,
  revoked: 5,
  ended_by_admin: 7,
  client_left: 0,
};

const colours: Readonly<Record<string, number>> = outcomeColours;

/** An outcome that this version of the console does not know is grey. */
export const outcomeColour = (outcome: string): number => colours[outcome] ?? 0;

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

const reasonLabels: Readonly<Record<ChoiceReason, string>> = {
  only: "it is the only one for this model",
  session: "it has this conversation",
  prefix: "it knows the beginning of this prompt",
  load: "it had the fewest requests in flight",
  spill: "the others were full or out",
  failover: "another one did not take the request",
};

/** Why a request went to its backend: a clause. */
export const reasonLabel = (reason: string): string =>
  (reasonLabels as Readonly<Record<string, string>>)[reason] ?? reason;

const lossLabels: Readonly<Record<CacheLoss, string>> = {
  elsewhere: "its conversation was at another backend before",
  tools_changed: "its tools are not those of the turn before",
  system_changed: "its system prompt is not that of the turn before",
  messages_changed: "earlier messages are not those of the turn before",
  evicted: "the backend no longer had it: nothing before the latest messages changed",
};

/** Why the input of a request did not come from the cache that the turn before left: a clause. */
export const lossLabel = (loss: string): string => (lossLabels as Readonly<Record<string, string>>)[loss] ?? loss;

const changeLabels: Readonly<Record<string, string>> = {
  model: "Model name",
  max_tokens: "Token limit",
  system_prompt_effort: "System prompt for the effort",
  system_prompt_language: "System prompt for the language",
  thinking: "Thinking mode",
  stream_usage: "Usage requested from the backend",
  system_turns_to_user: "System turns inside the conversation became turns of the user",
  drop_billing_line: "Billing line of the client taken out of the system prompt",
  developer_to_system: "Developer messages at the head became one system message",
  function_tools_only: "Tools that are not functions left out",
};

export const changeLabel = (change: string): string => changeLabels[change] ?? change;
