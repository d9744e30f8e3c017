import { dialectOf } from "../../../src/proxy/response/dialect.ts";
import { Meter, type MeterOptions } from "../../../src/proxy/stream/meter.ts";
import { StreamUsageFilter } from "../../../src/proxy/stream/filter.ts";
import type { UsageAdded } from "../../../src/proxy/rewrite/requested-stream.ts";
import { kindOf } from "../../../src/proxy/stream/body-kind.ts";
import { Passage } from "../../../src/proxy/stream/passage.ts";
import type { Usage } from "../../../src/domain/usage.ts";

export const utf8 = new TextEncoder();
export const text = new TextDecoder("utf-8", { ignoreBOM: true });
export const usageEvent = utf8.encode('data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}\n\n');
export const five: Usage = { inputTokens: 5, outputTokens: 2 };

export type StartedMeter = ReturnType<typeof startMeter>;

/** What a plain event stream passes through. @param added hides usage that was asked for like this */
export function passEvents(added?: UsageAdded): Passage {
  return new Passage(kindOf("text/event-stream", null), {
    listener: {},
    filter: added && new StreamUsageFilter(added),
  });
}

/** A meter over an event stream, and how it finished. */
export function startMeter({
  commit = async () => {},
  finish,
  ...options
}: Partial<MeterOptions & MeterOptions["count"] & MeterOptions["response"]> = {}) {
  const finishes: { usage: Usage; cause: unknown }[] = [];
  const meter = new Meter({
    passage: passEvents(),
    heartbeats: dialectOf("/v1/chat/completions"),
    keepaliveMs: 0,
    count: { commit },
    response: {
      finish: finish ?? (async (usage, cause) => void finishes.push({ usage, cause })),
    },
    ...options,
  });
  const writer = meter.writable.getWriter();
  // Each test looks at the readable side or at how it finished.
  writer.closed.catch(() => {});
  return { meter, writer, finishes };
}

export function write(writer: StartedMeter["writer"], chunk: string | Uint8Array): void {
  writer.write(typeof chunk === "string" ? utf8.encode(chunk) : chunk).catch(() => {});
}

export async function readText(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string> {
  const { done, value } = await reader.read();
  return done ? "(end)" : text.decode(value);
}

export async function readAll(stream: ReadableStream<Uint8Array>): Promise<string> {
  return text.decode(await new Response(stream).bytes());
}
