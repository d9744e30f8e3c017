import { beforeEach, describe, expect, test } from "bun:test";
import { startSimulator } from "../support/simulator/simulator.ts";
import { pollUntil } from "../support/poll-until.ts";
import { connectRaw, type RawClient } from "../support/raw-client.ts";
import { shared } from "../support/shared.ts";
import { startTollgate, type Tollgate } from "../support/tollgate.ts";

const backend = shared(() => startSimulator());
const gate = shared(() => startTollgate({ PROXY_UPSTREAM_URL: backend.url }));
beforeEach(() => backend.clear());

function post(script: string, stream = true, through = gate): Promise<RawClient> {
  const body = { model: "m", stream, messages: [{ role: "user", content: "Hi" }] };
  const options = stream ? { stream_options: { include_usage: true } } : {};
  return through.sendRaw("/v1/chat/completions", { ...body, ...options }, { script });
}

async function readCounts({ readKey }: Tollgate): Promise<[requests: number, input: number, output: number]> {
  const { total_request_count: requests, total_input_tokens: input, total_output_tokens: output } = await readKey();
  return [requests, input, output];
}

/** What `act` adds to the key's totals, once its request is counted. */
async function countsAddedBy(act: () => Promise<unknown>): Promise<number[]> {
  const before = await readCounts(gate);
  await act();
  const after = await pollUntil(async () => {
    const counts = await readCounts(gate);
    return counts[0] > before[0] && counts;
  });
  return after.map((value, index) => value - (before[index] ?? 0));
}

async function expectServing(): Promise<void> {
  const client = await post("usage=1,1");
  expect(await client.ended()).toBe("complete");
  client.close();
}

describe("a backend's response", () => {
  test("of 10,000 tiny frames is forwarded completely and counted", async () => {
    const sums = await countsAddedBy(async () => {
      const client = await post("tiny-frames=10000; usage=7,10000");
      expect(await client.ended()).toBe("complete");
      const text = await client.text();
      expect(text.match(/"content":"/g)?.length).toBeWithin(10_000, 10_003);
      expect(text).toEndWith("data: [DONE]\n\n");
      client.close();
    });
    expect(sums).toEqual([1, 7, 10_000]);
  });

  test("with truncated JSON in a frame is forwarded unchanged, and the usage after that frame is counted", async () => {
    const sums = await countsAddedBy(async () => {
      const client = await post("truncate-json@2; tokens=4; usage=7,4");
      expect(await client.ended()).toBe("complete");
      client.close();
    });
    expect(sums).toEqual([1, 7, 4]);
  });

  test("that is a truncated JSON body is forwarded unchanged and counted as a request", async () => {
    const sums = await countsAddedBy(async () => {
      const client = await post("truncate-json; usage=7,4", false);
      expect((await client.head()).status).toBe(200);
      const text = await client.text();
      expect(() => JSON.parse(text)).toThrow();
      client.close();
    });
    expect(sums[0]).toBe(1);
    await expectServing();
  });

  test("that does not end after [DONE] is ended after the read timeout and counted", async () => {
    await using impatient = await startTollgate({ PROXY_UPSTREAM_URL: backend.url, PROXY_STREAM_READ_TIMEOUT: "2" });
    const client = await post("never-end; tokens=2; usage=7,2", true, impatient);
    expect(await client.ended()).not.toBe("complete");
    expect(await client.text()).toEndWith("data: [DONE]\n\n");
    expect(await readCounts(impatient)).toEqual([1, 7, 2]);
    const next = await post("usage=1,1", true, impatient);
    expect(await next.ended()).toBe("complete");
    next.close();
  });

  test.each(["long-head=60KB", "long-head=1MB"])("with %s is forwarded completely", async (script) => {
    const client = await gate.sendRaw("/v1/anything", undefined, { script });
    const head = await client.head();
    expect([head.status, head.header("x-long")?.length]).toEqual([
      200,
      script.includes("KB") ? 60 * 1024 : 1024 * 1024,
    ]);
    expect(await client.ended()).toBe("complete");
    client.close();
    await expectServing();
  });
});

describe("a client that", () => {
  test("reads in small portions loses nothing and does not delay other clients", async () => {
    const client = await post("tokens=20000; usage=7,20000; rate=0");
    await client.nextEvent();
    // The sleeps play a client that reads slowly.
    for (let portion = 0; portion < 20; portion++) {
      client.pause();
      await Bun.sleep(10);
      const begun = performance.now();
      if (portion % 5 === 0) await expectServing();
      expect(performance.now() - begun).toBeLessThan(5000);
      client.resume();
      await Bun.sleep(1);
    }
    expect(await client.ended()).toBe("complete");
    expect(await client.text()).toEndWith("data: [DONE]\n\n");
    client.close();
  });

  test("sends more than its Content-Length gets its response and then the end of the connection", async () => {
    const client = await connectRaw(gate.url);
    client.send(
      `POST /v1/files HTTP/1.1\r\nHost: h\r\nx-api-key: ${gate.key}\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nabc`,
    );
    expect(await client.text()).toBe("abc");
    client.nextResponse();
    client.send("defghi\r\n\r\n");
    await client.closed();
    expect(client.received().toString()).not.toContain("200 OK");
    expect((await backend.nextRequest()).bodyBytes).toBe(3);
  });
});

describe("a clock that jumps", () => {
  test.each([-300 * 86_400_000, 300 * 86_400_000])("by %i ms during a stream triggers no timeout", async (jump) => {
    let now = Date.now();
    await using timed = await startTollgate({ PROXY_UPSTREAM_URL: backend.url }, { clock: () => now });
    const body = { model: "m", stream: true, max_tokens: 4, messages: [{ role: "user", content: "Hi" }] };
    const client = await timed.sendRaw("/v1/messages", body, { script: "usage=3,4; gap=200ms@2" });
    await client.nextEvent();
    now += jump;
    expect(await client.ended()).toBe("complete");
    client.close();
    await pollUntil(() => timed.log.some(({ outcome }) => outcome === "completed"));
    const duration = timed.log.find(({ outcome }) => outcome === "completed")?.["durationMs"];
    expect(Number(duration)).toBeWithin(150, 20_000);
    const [row] = await timed.admin.listKeys();
    expect(row).toMatchObject({ total_request_count: 1, total_input_tokens: 3, total_output_tokens: 4 });
  });
});
