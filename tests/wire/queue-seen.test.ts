import { expect, test } from "bun:test";
import type { RunningBody } from "../../src/admin/requests/contract.ts";
import { pollUntil } from "../support/poll-until.ts";
import { chat, startTollgateWithKeys } from "../support/tollgate-with-keys.ts";
import { shared } from "../support/shared.ts";

const gate = shared(() => startTollgateWithKeys({ PROXY_MAX_CONCURRENCY: "1" }));

test("who waits for a place at the backend is seen, with its own place in the line", async () => {
  const stream = { ...chat, stream: true };
  const inFlight = () => gate.admin.expectOk<RunningBody>("GET", "/api/in-flight");
  const clients = [await gate.postRaw(gate.key, "gap=forever@1", stream)];
  await clients[0]?.nextEvent();
  for (let n = 1; n < 3; n++) {
    clients.push(await gate.postRaw(gate.key, "", stream));
    await pollUntil(async () => (await inFlight()).requests.filter(({ state }) => state === "queued").length === n);
  }
  const { requests, queue } = await inFlight();
  expect(requests.map(({ state, place }) => [state, place])).toEqual([
    ["running", null],
    ["queued", { position: 1, of: 2 }],
    ["queued", { position: 2, of: 2 }],
  ]);
  expect(queue).toEqual({ places: 1, used: 1, waiting: 2 });
  expect(await gate.admin.expectOk<object>("GET", "/api/overview")).toMatchObject({ queue });
  clients[0]?.reset();
  for (const client of clients.slice(1)) expect(await client.ended()).toBe("complete");
  await pollUntil(async () => (await inFlight()).requests.length === 0);
  expect((await inFlight()).queue).toEqual({ places: 1, used: 0, waiting: 0 });
});
