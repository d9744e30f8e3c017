import { expect, test } from "bun:test";
import { personas } from "../../src/demo/personas.ts";
import { runSimulatedClient } from "../../src/demo/simulated-clients.ts";
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
