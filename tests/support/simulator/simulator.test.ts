import { afterEach, beforeEach, expect, test } from "bun:test";
import { type Simulator, startSimulator } from "./simulator.ts";
import { connectRaw } from "../raw-client.ts";

let simulator: Simulator;
beforeEach(() => {
  simulator = startSimulator();
});
afterEach(() => simulator.stop());

const chat = (fields: object = {}) =>
  JSON.stringify({ model: "m", max_tokens: 3, messages: [{ role: "user", content: "Hi" }], ...fields });

async function post(path: string, body: string, script = "") {
  const client = await connectRaw(simulator.url);
  client.request("POST", path, { "Content-Type": "application/json", "x-simulate": script }, body);
  return client;
}

test("a client that leaves a stream is noticed immediately, and the request counts as aborted", async () => {
  const client = await post("/v1/chat/completions", chat({ stream: true }), "gap=forever@2");
  await client.nextEvent();
  const request = await simulator.nextRequest();
  expect(simulator.stats()).toMatchObject({ open: 1, aborted: 0 });
  const leftAt = performance.now();
  client.reset();
  const { how, at } = await request.ended;
  expect(how).toBe("aborted");
  expect(at - leftAt).toBeLessThan(5000);
  expect(simulator.stats()).toMatchObject({ open: 0, aborted: 1, finished: 0, broken: 0 });
});

test("requests are recorded exactly as sent", async () => {
  const client = await connectRaw(simulator.url);
  client.send(
    "PUT /v1/a%2Fb//c?x=%20 HTTP/1.1\r\nHost: somewhere\r\nX-One: 1\r\nx-one: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
  );
  client.send("3\r\nabc\r\n2;ext=1\r\nde\r\n0\r\n\r\n");
  expect(await client.text()).toBe("abcde");
  const request = await simulator.nextRequest();
  expect(request.method).toBe("PUT");
  expect(request.target).toBe("/v1/a%2Fb//c?x=%20");
  expect(request.headers).toEqual([
    ["Host", "somewhere"],
    ["X-One", "1"],
    ["x-one", "2"],
    ["Transfer-Encoding", "chunked"],
  ]);
  expect(Buffer.from(request.body()).toString()).toBe("abcde");
  client.close();
});
