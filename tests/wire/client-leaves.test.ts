import { beforeEach, describe, expect, test } from "bun:test";
import { startSimulator } from "../support/simulator/simulator.ts";
import { pollUntil } from "../support/poll-until.ts";
import { connectRaw, type RawClient } from "../support/raw-client.ts";
import { shared } from "../support/shared.ts";
import { startTollgate } from "../support/tollgate.ts";
import { unreadBytes } from "../support/unread-bytes.ts";

const backend = shared(() => startSimulator());
const gate = shared(() => startTollgate({ PROXY_UPSTREAM_URL: backend.url }));
beforeEach(() => backend.clear());

const streamed = { model: "m", stream: true, max_tokens: 1000, messages: [{ role: "user", content: "Hi" }] };
const whole = { ...streamed, stream: false };

const post = (script: string, body: object): Promise<RawClient> =>
  gate.sendRaw("/v1/chat/completions", body, { script });

const waysToLeave: Record<string, (client: RawClient) => void> = {
  resets: (client) => client.reset(),
  closes: (client) => client.close(),
  "half-closes": (client) => client.halfClose(),
};

describe.each(Object.entries(waysToLeave))("a client that %s", (_, leave) => {
  test.each([
    ["before the head of a stream", "slow-head=forever", streamed, false],
    ["before a whole response", "slow-head=forever", whole, false],
    ["before the first frame", "gap=forever@0", streamed, false],
    ["between frames", "gap=forever@2", streamed, true],
    ["while the backend floods", "flood", streamed, true],
  ])("%s ends the backend's request within a second", async (_phase, script, body, waitsForFrame) => {
    const client = await post(script, body);
    const request = await backend.nextRequest();
    if (waitsForFrame) await client.nextEvent();
    const leftAt = performance.now();
    leave(client);
    const { how, at } = await request.ended;
    expect(how).toBe("aborted");
    // A loaded machine is slower.
    expect(at - leftAt).toBeLessThan(5000);
    const entry = await gate.waitForLog(({ outcome }) => outcome === "client_left");
    expect(entry).toMatchObject({ message: "Request ended", keyId: gate.keyId });
  });
});

describe("a client that leaves", () => {
  test("while it sends a body ends the backend's request", async () => {
    const client = await connectRaw(gate.url);
    client.send(
      `PUT /v1/files HTTP/1.1\r\nHost: h\r\nx-api-key: ${gate.key}\r\nContent-Length: 1000000\r\n\r\n${"x".repeat(1000)}`,
    );
    await backend.waitFor(({ type }) => type === "head");
    client.reset();
    await backend.waitFor(({ type }) => type === "closed" || type === "aborted");
  });

  test("in the middle of a JSON body never reaches the backend", async () => {
    const client = await connectRaw(gate.url);
    client.send(
      `POST /v1/completions HTTP/1.1\r\nHost: h\r\nx-api-key: ${gate.key}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"model":`,
    );
    await pollUntil(() => unreadBytes(Number(new URL(gate.url).port)) === 0);
    client.reset();
    const entry = await gate.waitForLog(({ status, path }) => status === 499 && path === "/v1/completions");
    expect(entry).toMatchObject({ outcome: "client_left" });
    expect(backend.requests()).toEqual([]);
  });

  test("after the head is counted as a request; before it, it is not", async () => {
    const before = await gate.readKey();
    const early = await post("slow-head=forever", streamed);
    const request = await backend.nextRequest();
    early.reset();
    await request.ended;
    const late = await post("gap=forever@2", streamed);
    await late.nextEvent();
    const second = await backend.nextRequest();
    late.reset();
    await second.ended;
    const isCounted = async (): Promise<boolean> =>
      (await gate.readKey()).total_request_count === before.total_request_count + 1;
    await pollUntil(isCounted);
    expect(gate.log.filter(({ outcome }) => outcome === "client_left").length).toBeGreaterThanOrEqual(2);
  });
});
