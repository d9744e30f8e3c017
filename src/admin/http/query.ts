import { isDay } from "../../time/seoul.ts";
import { ApiError } from "./errors.ts";

const integerNames = [
  "days",
  "hours",
  "bucket_minutes",
  "key_id",
  "key",
  "team_id",
  "team",
  "user_id",
  "gpu_id",
  "top",
  "list",
  "limit",
  "min_duration_ms",
  "conversation",
  "after",
];

export function readQuery({ query }: { query: Record<string, unknown> }): void {
  for (const [name, text] of Object.entries(query)) {
    // As it is stored: PostgreSQL cannot compare with one.
    if (typeof text === "string" && text.includes("\0")) query[name] = text.replaceAll("\0", "\ufffd");
  }
  // Only decimal digits. Elysia (1.4.30) also converts `0x7`, `1e1` and `7.0`. Remove when it does not.
  for (const name of integerNames) {
    const text = query[name];
    if (text !== undefined) query[name] = typeof text === "string" && /^\d+$/.test(text) ? Number(text) : Number.NaN;
  }
}

const dayLength = "2026-05-01".length;

/** @throws ApiError if there is no such time */
export function parseTimestamp(
  name: string,
  text: string | undefined,
  message = timestampMessage(name),
): number | undefined {
  if (text === undefined) return undefined;
  const ms = isDay(text.slice(0, dayLength)) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(ms)) throw new ApiError(400, message);
  return ms;
}

export const timestampMessage = (name: string): string =>
  `${name} must be a timestamp with an offset, such as 2026-05-01T09:00:00+09:00`;
