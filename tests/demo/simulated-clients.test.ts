import { expect, test } from "bun:test";
import { personas } from "../../src/demo/personas.ts";
import { createFaults, runSimulatedClient } from "../../src/demo/simulated-clients.ts";
import { msPerMinute, startOfDay } from "../../src/time/seoul.ts";
import { pollUntil } from "../support/poll-until.ts";

/** A clock that only waiting moves, so that a busy machine is late for nothing. */
function clockOfWaits(since: number, onWait: (now: number) => Promise<void> = async () => {}) {
  let now = since;
  return {
    clock: () => now,
    async wait(ms: number): Promise<void> {
      now += ms;
      await onWait(now);
    },
  };
}

test("a fault is simulated for the next request only, which is then sent again", async () => {
  const scripts: string[] = [];
  const ended = new AbortController();
  using backend = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      scripts.push(request.headers.get("x-simulate") ?? "");
      return new Response("{}");
    },
  });
  const [persona] = personas;
  if (persona === undefined) throw new Error("There are no personas");
  const since = startOfDay("2026-03-04") + 10 * 60 * msPerMinute;
  const faults = ["refuse"];
  await runSimulatedClient({
    url: backend.url.origin,
    key: "k",
    persona,
    seed: 0,
    load: () => 0.5,
    since,
    ...clockOfWaits(since, async () => {
      if (faults.length > 0) return;
      await pollUntil(() => scripts.length === 2);
      ended.abort();
    }),
    nextFault: () => faults.pop(),
    signal: ended.signal,
  });
  const [faulty = "", again] = scripts;
  expect(faulty).toEndWith("&fault=refuse");
  expect(again).toBe(faulty.slice(0, -"&fault=refuse".length));
});

test("one or two requests an hour fail, in different ways, the first one soon", () => {
  let now = Date.parse("2026-03-04T05:06:07Z");
  const nextFault = createFaults(() => now);
  const faults: { atMinute: number; fault: string }[] = [];
  for (let second = 0; second < 6 * 3600; second++, now += 1000) {
    const fault = nextFault();
    if (fault !== undefined) faults.push({ atMinute: Math.floor(second / 60), fault });
  }
  expect(faults[0]?.atMinute).toBe(2);
  for (let hour = 0; hour < 6; hour++) {
    expect(faults.filter(({ atMinute }) => Math.floor(atMinute / 60) === hour).length).toBeWithin(1, 3);
  }
  expect(new Set(faults.map(({ fault }) => fault)).size).toBe(3);
});
