import { threeDigits } from "../lib/format.ts";

/** `7 ms`, `1.23 s`, `2 min 5 s` */
export function milliseconds(ms: number): string {
  if (ms < 1) return ms === 0 ? "0 ms" : "< 1 ms";
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_995) return `${threeDigits(ms / 1000)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** `812 B`, `1.2 KiB`, `3.4 MiB` */
export function byteSize(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  const power = Math.min(units.length, Math.floor(Math.log2(bytes) / 10));
  return `${threeDigits(bytes / 1024 ** power)} ${units[power - 1]}`;
}

const outcomeLabels: Readonly<Record<string, string>> = {
  completed: "Completed",
  client_left: "Client left",
  shutdown: "Ended by a shutdown",
  upstream_failed: "Backend failed",
  timed_out: "Timed out",
  refused: "Refused",
  revoked: "Ended with its key",
  ended_by_admin: "Ended in the console",
};

/** The outcomes that a filter can select, in the order of the list. */
export const outcomes = Object.keys(outcomeLabels);

/** The API may name an outcome that this version of the console does not know. */
export const outcomeLabel = (outcome: string): string => outcomeLabels[outcome] ?? outcome;

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
