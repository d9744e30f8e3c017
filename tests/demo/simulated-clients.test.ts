import { expect, test } from "bun:test";
import { generateHistory } from "../../src/demo/history.ts";
import { personas } from "../../src/demo/personas.ts";
import { runSimulatedClient } from "../../src/demo/simulated-clients.ts";
import { minuteOf, msPerMinute, startOfDay } from "../../src/time/seoul.ts";
import { wait } from "../../src/time/wait.ts";

/** Lets ten minutes pass within two seconds. */
const speed = 300;

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
  const began = performance.now();
  const ended = new AbortController();
  const shared = {
    url: backend.url.origin,
    since,
    clock: () => since + (performance.now() - began) * speed,
    wait: (ms: number, signal: AbortSignal) => wait(ms / speed, signal),
    load: () => 0.5,
    nextFault: () => undefined,
    signal: ended.signal,
  };
  const clients = personas.map((persona, index) =>
    runSimulatedClient({ ...shared, key: `${index}`, persona, seed: index }),
  );
  await Bun.sleep((10 * msPerMinute) / speed);
  ended.abort();
  await Promise.all(clients);
  return sent;
}

test.each([3, 10.5, 20])("from %p h on, the clients send what the history would have had", async (hour) => {
  const since = startOfDay("2026-03-04") + hour * 60 * msPerMinute;
  const sent = await recordTenMinutes(since);
  const keys = personas.map((persona, index) => ({ keyId: index, persona }));
  const expected = generateHistory(keys, since + 10 * msPerMinute).counts.filter(
    ({ minute }) => minute >= minuteOf(since),
  );
  for (const [index, { nextTurn }] of personas.entries()) {
    if (nextTurn === undefined) continue;
    const wanted = expected.filter(({ keyId }) => keyId === index);
    const usages = sent
      .filter(({ key }) => key === `Bearer ${index}`)
      .map(
        ({ script }) =>
          /^usage=(\d+),(\d+)(?:,\d+)?;slow-head=\d+ms;rate=\d+$/.exec(script)?.slice(1).map(Number) ?? [],
      );
    const sum = (values: readonly (number | undefined)[]): number =>
      values.reduce<number>((total, value) => total + (value ?? 0), 0);
    const requestCount = sum(wanted.map((one) => one.requestCount));
    // The last requests may be late on a busy machine.
    expect(usages.length).toBeWithin(requestCount * 0.9 - 3, requestCount * 1.1 + 2);
    const outputTokens = sum(wanted.map((one) => one.outputTokens));
    expect(sum(usages.map(([, output]) => output))).toBeWithin(outputTokens * 0.85 - 900, outputTokens * 1.15 + 900);
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
      if (scripts.length === 3) ended.abort();
      return new Response("{}");
    },
  });
  const [persona] = personas;
  if (persona === undefined) throw new Error("There are no personas");
  const since = startOfDay("2026-03-04") + 10 * 60 * msPerMinute;
  const began = performance.now();
  const faults = ["status=503"];
  await runSimulatedClient({
    url: backend.url.origin,
    key: "k",
    persona,
    seed: 0,
    load: () => 0.5,
    since,
    clock: () => since + (performance.now() - began) * speed,
    wait: (ms, signal) => wait(ms / speed, signal),
    nextFault: () => faults.pop(),
    signal: ended.signal,
  });
  expect(scripts.slice(0, 2)).toEqual([`${scripts[1]};status=503`, scripts[1] ?? ""]);
  expect(scripts.filter((script) => script.endsWith(";status=503")).length).toBe(1);
});
