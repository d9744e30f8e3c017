import { expect, test } from "bun:test";
import { startSimulator } from "./simulator.ts";
import { rejectionOf } from "../rejection.ts";

test("nextRequest returns each request once, in order, also to callers that wait", async () => {
  using simulator = startSimulator();
  const waiting = [simulator.nextRequest(), simulator.nextRequest()];
  for (const name of ["one", "two", "three"]) await fetch(`${simulator.url}/v1/${name}`);
  const paths = (await Promise.all([...waiting, simulator.nextRequest()])).map(({ path }) => path);
  expect(paths).toEqual(["/v1/one", "/v1/two", "/v1/three"]);
});

test("waiting past the deadline rejects with a message", async () => {
  using simulator = startSimulator();
  expect(String(await rejectionOf(simulator.nextRequest(20)))).toContain("saw no request within 20 ms");
  expect(String(await rejectionOf(simulator.waitFor(() => false, 20)))).toContain("within 20 ms");
});

test("waitFor finds a past event", async () => {
  using simulator = startSimulator();
  await fetch(`${simulator.url}/v1/models`);
  const finished = await simulator.waitFor(({ type }) => type === "finished");
  const connected = await simulator.waitFor(({ type }) => type === "connected");
  expect(finished.at).toBeGreaterThan(connected.at);
  simulator.clear();
  expect(simulator.requests()).toEqual([]);
  expect(await rejectionOf(simulator.waitFor(({ type }) => type === "connected", 20))).toBeInstanceOf(Error);
});

test("recordRequests limits how many requests are kept, down to none", async () => {
  using few = startSimulator({ recordRequests: 2 });
  for (const name of ["one", "two", "three"]) await fetch(`${few.url}/v1/${name}`);
  expect(few.requests().map(({ path }) => path)).toEqual(["/v1/two", "/v1/three"]);
  using none = startSimulator({ recordRequests: 0 });
  await fetch(`${none.url}/v1/models`);
  expect(none.requests()).toEqual([]);
  expect(none.stats().finished).toBe(1);
});
