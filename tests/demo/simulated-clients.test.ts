import { expect, test } from "bun:test";
import { generatePast } from "../../src/demo/past.ts";
import { personas } from "../../src/demo/personas.ts";
import { createFaults, runSimulatedClient } from "../../src/demo/simulated-clients.ts";
import { isActiveAt } from "../../src/demo/traffic.ts";
import { minuteOf, msPerMinute, startOfDay } from "../../src/time/seoul.ts";
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

/** Lets the clients send to a backend that records what they request, for ten minutes from `since` on. */
async function recordTenMinutes(since: number): Promise<{ key: string; path: string; script: string }[]> {
  const sent: { key: string; path: string; script: string }[] = [];
  using backend = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const { headers } = request;
      sent.push({
        key: headers.get("authorization") ?? "",
        path: new URL(request.url).pathname,
        script: headers.get("x-simulate") ?? "",
      });
      return new Response("{}");
    },
  });
  for (const [index, persona] of personas.entries()) {
    const ended = new AbortController();
    let begun = 0;
    const before = sent.length;
    await runSimulatedClient({
      url: backend.url.origin,
      key: `${index}`,
      // Leaving is in real time: on a busy machine a client could leave before its request arrives.
      persona: { ...persona, isImpatient: false },
      seed: index,
      since,
      ...clockOfWaits(since, async (now) => {
        if (now < since + 10 * msPerMinute) return;
        await pollUntil(() => sent.length - before === begun);
        ended.abort();
      }),
      load: () => 0.5,
      nextFault: () => void begun++,
      signal: ended.signal,
    });
  }
  return sent;
}

test.each([3, 10.5, 20])("from %p h on, the clients send what the history would have had", async (hour) => {
  const since = startOfDay("2026-03-04") + hour * 60 * msPerMinute;
  const sent = await recordTenMinutes(since);
  const keys = personas.map((persona, index) => ({ keyId: index, persona }));
  const expected = generatePast(keys, since + 10 * msPerMinute).counts.filter(
    ({ minute }) => minute >= minuteOf(since),
  );
  for (const [index, { traffic }] of personas.entries()) {
    if (!isActiveAt(traffic, 0)) continue;
    const wanted = expected.filter(({ keyId }) => keyId === index);
    const usages = sent.filter(({ key }) => key === `Bearer ${index}`).map(({ script }) => new URLSearchParams(script));
    const sum = (values: readonly (number | undefined)[]): number =>
      values.reduce<number>((total, value) => total + (value ?? 0), 0);
    expect({
      requestCount: usages.length,
      outputTokens: sum(usages.map((usage) => Number(usage.get("outputTokens")))),
    }).toEqual({
      requestCount: sum(wanted.map((one) => one.requestCount)),
      outputTokens: sum(wanted.map((one) => one.outputTokens)),
    });
  }
});

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
