import type { Usage } from "../domain/usage.ts";

export type Header = readonly [name: string, value: string];

/** Separates two frames at the point at which a model would compute the next token. A paced stream waits here. */
export const tick: unique symbol = Symbol("tick");

/** One server-sent event including its empty line. */
export type Frame = string | typeof tick;

/** The response of a healthy backend, before the script applies any fault to it. */
export type SimulatedResponse = {
  status: number;
  headers: readonly Header[];
  /** What the simulator counted, whether or not the response reports it. */
  usage: Usage | undefined;
  /** Whether the response reports that usage to the client. */
  usageReported: boolean;
} & ({ body: string | Uint8Array; frames?: never } | { frames: Iterable<Frame>; body?: never });

export function jsonResponse(status: number, value: unknown, usage?: Usage, usageReported = true): SimulatedResponse {
  const headers: Header[] = [["content-type", "application/json"]];
  return { status, headers, body: JSON.stringify(value), usage, usageReported: usage !== undefined && usageReported };
}

export function streamResponse(frames: Iterable<Frame>, usage: Usage, usageReported: boolean): SimulatedResponse {
  const headers: Header[] = [["content-type", "text/event-stream; charset=utf-8"]];
  return { status: 200, headers, frames, usage, usageReported };
}

/** An event in the format of the messages and responses APIs. */
export function namedEvent(type: string, fields: Readonly<Record<string, unknown>>): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}
