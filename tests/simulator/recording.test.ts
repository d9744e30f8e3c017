import { expect, test } from "bun:test";
import { startSimulator } from "../../src/simulator/simulator.ts";
import { rejectionOf } from "../support/rejection.ts";

test("requests are given out once each, in order, also to who waits for them", async () => {
  using simulator = startSimulator();
  const waiting = [simulator.nextRequest(), simulator.nextRequest()];
  for (const name of ["one", "two", "three"]) await fetch(`${simulator.url}/v1/${name}`);
  const paths = (await Promise.all([...waiting, simulator.nextRequest()])).map(({ path }) => path);
  expect(paths).toEqual(["/v1/one", "/v1/two", "/v1/three"]);
});

test("waiting for what does not come ends with a sentence", async () => {
  using simulator = startSimulator();
  expect(String(await rejectionOf(simulator.nextRequest(20)))).toContain("saw no request within 20 ms");
  expect(String(await rejectionOf(simulator.waitFor(() => false, 20)))).toContain("within 20 ms");
});

test("an event that happened already is found", async () => {
  using simulator = startSimulator();
  await fetch(`${simulator.url}/v1/models`);
  const finished = await simulator.waitFor(({ type }) => type === "finished");
  const connected = await simulator.waitFor(({ type }) => type === "connected");
  expect(finished.at).toBeGreaterThan(connected.at);
  simulator.clear();
  expect(simulator.requests()).toEqual([]);
  expect(await rejectionOf(simulator.waitFor(({ type }) => type === "connected", 20))).toBeInstanceOf(Error);
});

test("only so many requests are kept, and none where that is asked for", async () => {
  using few = startSimulator({ recordRequests: 2 });
  for (const name of ["one", "two", "three"]) await fetch(`${few.url}/v1/${name}`);
  expect(few.requests().map(({ path }) => path)).toEqual(["/v1/two", "/v1/three"]);
  using none = startSimulator({ recordRequests: 0 });
  await fetch(`${none.url}/v1/models`);
  expect(none.requests()).toEqual([]);
  expect(none.stats().finished).toBe(1);
});
