import { expect, test } from "bun:test";
import { startSimulator } from "../support/simulator/simulator.ts";
import { createRandom, type Random } from "../support/random.ts";
import { startTollgate } from "../support/tollgate.ts";
import { pollUntil } from "../support/poll-until.ts";
import { shared } from "../support/shared.ts";

const backend = shared(() => startSimulator({ recordRequests: 0 }));
const gate = shared(() => startTollgate({ PROXY_UPSTREAM_URL: backend.url, LOG_LEVEL: "error" }));

const requests = 2000;
const atOnce = 40;

/** The response is complete with these. */
const healthy = ["", "split=997", "gap=3ms@1", "connection-close", "slow-head=3ms", "early-hints", "http10"];
/** With these it may be truncated or missing. */
const faults = [
  "reset-before-head",
  "close-before-head",
  "garbage",
  "half-head",
  "status=999",
  "die@1",
  "reset@1",
  "die-mid-frame@1",
  "reset-mid-frame@1",
  "wrong-length=9",
  "wrong-length=-9",
  "early-response",
  "early-response; connection-close",
  "http10; die-mid-frame@1",
];

/** Repeats the marker, so that any part of the text shows which request it belongs to. */
const markedText = (marker: string, random: Random): string => `${marker}.`.repeat(1 + random.below(3000));

/** How the requests ended. Only some of the left and broken ones are counted. */
interface Tally {
  whole: number;
  left: number;
  broken: number;
  /** Healthy POSTs that were sent over a connection that a faulty response before them was breaking. None is repeated. */
  takenAlong: number;
}

/** Sends one upload that the backend echoes, with a marker in its head and body. */
async function echoOnce(number: number, random: Random, tally: Tally): Promise<void> {
  const marker = `m${number}`;
  const sent = markedText(marker, random);
  const isFaulty = random.below(3) === 0;
  const script = random.pick(isFaulty ? faults : healthy);
  const type = random.pick(["application/json", "text/plain"]);
  const leaveAfterMs = random.below(5) === 0 ? random.below(10) : undefined;
  const method = random.pick(["POST", "PUT"]);
  const leaving = new AbortController();
  if (leaveAfterMs !== undefined) setTimeout(() => leaving.abort(), leaveAfterMs);
  try {
    const response = await fetch(`${gate.url}/v1/echo/${marker}`, {
      method,
      headers: { "x-api-key": gate.key, "content-type": type, "x-simulate": `${script}; header=x-marker: ${marker}` },
      body: sent,
      signal: leaving.signal,
    });
    if (response.status === 502) {
      if (!isFaulty) {
        expect(method).toBe("POST");
        tally.takenAlong++;
      }
      expect(await response.text()).toContain("upstream_unreachable");
      return;
    }
    expect([response.status, response.headers.get("x-marker")]).toEqual([200, marker]);
    const received = await response.text();
    if (script.startsWith("early-response")) expect(received).toContain(`"/v1/echo/${marker}"`);
    else if (isFaulty) expect(sent).toStartWith(received);
    else expect(received).toBe(sent);
    tally.whole++;
  } catch (error) {
    if (leaving.signal.aborted) tally.left++;
    else if (isFaulty && error instanceof Error && "code" in error) tally.broken++;
    else throw error;
  }
}

test("no byte of one response appears in another, in 2,000 concurrent requests with random faults", async () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const random = createRandom(seed);
  const tally: Tally = { whole: 0, left: 0, broken: 0, takenAlong: 0 };
  // A try before this one has counted too.
  const { total_request_count: countedBefore } = await gate.readKey();
  let next = 0;
  const runClient = async (): Promise<void> => {
    while (next < requests) await echoOnce(next++, random, tally);
  };
  try {
    await Promise.all(Array.from({ length: atOnce }, runClient));
  } catch (error) {
    throw new Error(`Failed with seed ${seed}`, { cause: error });
  }
  expect(tally.whole).toBeGreaterThan(requests / 2);
  expect(tally.takenAlong).toBeLessThanOrEqual(3);
  await pollUntil(() => backend.stats().open === 0);
  const { total_request_count: countedNow } = await gate.readKey();
  expect(countedNow - countedBefore).toBeWithin(tally.whole, tally.whole + tally.left + tally.broken + 1);
});
