import type { Usage } from "../domain.ts";
import type { Speech } from "./text.ts";

export type Header = readonly [name: string, value: string];

/** Stands between two frames where a model would work on the next token: a paced stream waits here. */
export const tick: unique symbol = Symbol("beat");

/** One server-sent event, its empty line included. */
export type Frame = string | typeof tick;

/** What the simulated backend says, before any fault is applied to it. */
export type SimulatedResponse = {
  status: number;
  headers: readonly Header[];
  /** What it counted, whether or not the answer tells. */
  usage: Usage | undefined;
  /** Whether the client gets to see that usage. */
  usageReported: boolean;
} & ({ body: string | Uint8Array; frames?: never } | { frames: Iterable<Frame>; body?: never });

export type JsonObject = Readonly<Record<string, unknown>>;

/** One request to a model, with everything that the dialects have in common already read. */
export interface Job extends Speech {
  body: JsonObject;
  model: string;
  /** 32 hexadecimal characters; each dialect puts its own prefix in front. */
  id: string;
  /** Seconds since the epoch. */
  created: number;
  inputTokens: number;
  /** Whether `outputTokens` is a limit of the client's, rather than where the model would have stopped. */
  cutShort: boolean;
  /** What it says it counted, where that is not what it did. */
  usage: Usage | undefined;
  /** "none" leaves usage out, "null" says `null` where it should be. */
  usageMode: "told" | "none" | "null";
  /** Whether a stream ends with `data: [DONE]`, where its dialect has that. */
  done: boolean;
}

export function jsonAnswer(status: number, value: unknown, usage?: Usage, usageReported = true): SimulatedResponse {
  const headers: Header[] = [["content-type", "application/json"]];
  return { status, headers, body: JSON.stringify(value), usage, usageReported: usage !== undefined && usageReported };
}

export function eventStream(frames: Iterable<Frame>, usage: Usage, usageReported: boolean): SimulatedResponse {
  const headers: Header[] = [["content-type", "text/event-stream; charset=utf-8"]];
  return { status: 200, headers, frames, usage, usageReported };
}

/** An event as the messages and responses APIs write it. */
export function namedEvent(type: string, fields: JsonObject): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}

export function usageOf(job: Job): Usage {
  return job.usage ?? { inputTokens: job.inputTokens, outputTokens: job.outputTokens };
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
