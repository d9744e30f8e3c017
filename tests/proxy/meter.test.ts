import { describe, expect, test } from "bun:test";
import { createMeter, type Meter, type MeterOptions } from "../../src/proxy/meter.ts";
import { createUsageReader } from "../../src/proxy/usage-reader.ts";
import type { Usage } from "../../src/proxy/usage.ts";

const utf8 = new TextEncoder();

interface Settlement {
  usage: Usage;
  cause: unknown;
}

function startMeter(options: Partial<MeterOptions> = {}): { meter: Meter; settlements: Settlement[] } {
  const settlements: Settlement[] = [];
  const meter = createMeter({
    reader: createUsageReader({ contentType: "text/event-stream", contentEncoding: null }),
    keepaliveMs: 0,
    async settle(usage, cause) {
      settlements.push({ usage, cause });
    },
    ...options,
  });
  return { meter, settlements };
}

const usageEvent = utf8.encode('data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}\n\n');

describe("meter", () => {
  test("settles a whole stream once, without a cause", async () => {
    const { meter, settlements } = startMeter();
    const writer = meter.writable.getWriter();
    void writer.write(usageEvent);
    void writer.close();
    expect(await new Response(meter.readable).bytes()).toEqual(usageEvent);
    expect(settlements).toEqual([{ usage: { inputTokens: 5, outputTokens: 2 }, cause: undefined }]);
  });

  test("settles once with the usage so far when the client leaves", async () => {
    const { meter, settlements } = startMeter();
    const writer = meter.writable.getWriter();
    const reader = meter.readable.getReader();
    void writer.write(usageEvent);
    await reader.read();
    await reader.cancel("gone");
    expect(settlements).toEqual([{ usage: { inputTokens: 5, outputTokens: 2 }, cause: "gone" }]);
    expect(writer.closed).rejects.toBe("gone");
  });

  test("settles once with the usage so far when the upstream breaks", async () => {
    const { meter, settlements } = startMeter();
    const reader = meter.readable.getReader();
    const writer = meter.writable.getWriter();
    void writer.write(usageEvent);
    await reader.read();
    await writer.abort("broken");
    expect(reader.read()).rejects.toBe("broken");
    expect(settlements).toEqual([{ usage: { inputTokens: 5, outputTokens: 2 }, cause: "broken" }]);
  });
});
