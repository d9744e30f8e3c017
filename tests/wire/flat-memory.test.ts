import { describe, expect, test } from "bun:test";
import { startSimulator } from "../support/simulator/simulator.ts";
import { startProgramWithKey } from "../support/program-with-key.ts";
import { shared } from "../support/shared.ts";
import { connectRaw } from "../support/raw-client.ts";
import { pollUntil } from "../support/poll-until.ts";

const megabyte = 1024 * 1024;
const backend = shared(() => startSimulator({ keepBodyBytes: 0 }));
const program = shared(() => startProgramWithKey(backend.url));

describe("one process", () => {
  test("uses constant memory if a client stalls while the backend floods", async () => {
    const client = await program.postStream("flood", { keepBody: false });
    await client.head();
    client.pause();
    const before = program.rssBytes();
    let peak = before;
    // The client stalls for two seconds.
    for (let sample = 0; sample < 40; sample++) {
      await Bun.sleep(50);
      peak = Math.max(peak, program.rssBytes());
    }
    client.reset();
    expect(peak - before).toBeLessThan(48 * megabyte);
    await pollUntil(() => backend.stats().open === 0);
  });

  test("forwards a large response in constant memory", async () => {
    const before = program.rssBytes();
    const client = await connectRaw(program.url, { keepBody: false });
    client.request("GET", "/v1/files/1", { "x-api-key": program.key, "x-simulate": "body=400MB" });
    let peak = before;
    const watch = setInterval(() => (peak = Math.max(peak, program.rssBytes())), 20);
    expect(await client.ended()).toBe("complete");
    clearInterval(watch);
    expect(client.bodyBytes()).toBe(400 * megabyte);
    expect(peak - before).toBeLessThan(100 * megabyte);
    client.close();
  });

  test("forwards a large upload to a slowly reading backend in constant memory", async () => {
    backend.clear();
    const before = program.rssBytes();
    let peak = before;
    const block = new Uint8Array(megabyte);
    const blocks = 300;
    let sent = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        peak = Math.max(peak, program.rssBytes());
        if (sent++ === blocks) controller.close();
        else controller.enqueue(block);
      },
    });
    const headers = { "content-type": "application/octet-stream" };
    const response = await program.send("/v1/files", body, { headers, script: "pause-body=1s" });
    await response.body?.cancel();
    expect((await backend.nextRequest()).bodyBytes).toBe(blocks * megabyte);
    expect(peak - before).toBeLessThan(100 * megabyte);
  });
});

test("the memory of long bodies is free within 12 seconds", async () => {
  const fresh = await startProgramWithKey(backend.url);
  const body = JSON.stringify({
    model: "m",
    max_tokens: 1,
    messages: [{ role: "user", content: "x ".repeat(200_000) }],
  });
  const post = async () => (await fresh.send("/v1/chat/completions", body)).text();
  for (let wave = 0; wave < 4; wave++) await Promise.all(Array.from({ length: 16 }, post));
  await pollUntil(() => fresh.rssBytes() <= 150e6, 12_000);
  await fresh.stop();
});
