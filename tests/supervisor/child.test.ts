import { expect, test } from "bun:test";
import { createDispatch } from "../../src/routing/dispatch.ts";
import type { Aggregate } from "../../src/supervisor/aggregate.ts";
import { type Child, startChild } from "../../src/supervisor/child.ts";
import { backendOf, fileCatalog, replaceableCatalog } from "../support/catalog.ts";
import { silentLog } from "../support/local-places.ts";
import { rejectionOf } from "../support/rejection.ts";

/** What the process of a test can use: `answer` runs for each call that arrives. */
const prelude = `
  let id = 1;
  const call = (name, ...args) => process.send({ id: id++, call: name, args });
  const listen = () => call("listening", { url: "http://a", adminUrl: "http://b" });
  process.on("message", (message) => message.call && answer(message.call));
`;

interface Started {
  child: Child;
  /** What happened to it, in order. */
  events: string[];
}

/** Starts a process that runs this script. */
function start(script: string, heartbeatLimits = { intervalMs: 600_000, maxMissed: 1 }): Started {
  const events: string[] = [];
  const aggregate: Aggregate = {
    add: () => void events.push("added"),
    setFinalMetrics: () => void events.push("final metrics"),
    async remove() {
      await Bun.sleep(20);
      events.push("removed");
    },
    metricsText: async () => "",
    inFlight: async () => 0,
    running: async () => [],
    endRequest: async () => false,
  };
  const catalog = replaceableCatalog(fileCatalog([backendOf("a")], []));
  const child = startChild({
    command: [process.execPath, "-e", prelude + script],
    env: { PATH: process.env["PATH"] },
    catalog: catalog.get,
    dispatch: createDispatch({
      catalog,
      maxWaiting: 0,
      backendWaitMs: 0,
      probe: async () => ({ ok: true }),
      received: async () => [],
      clock: Date.now,
      monotonic: () => performance.now(),
      log: silentLog,
      onChanged() {},
    }),
    mayLogRefused: () => true,
    machine: () => ({}),
    aggregate,
    heartbeatLimits,
    onUnresponsive: () => void events.push("unresponsive"),
  });
  return { child, events };
}

test("a stop that the process missed while it started is sent again once it listens", async () => {
  const { child } = start(`
    let stops = 0;
    const answer = (name) => {
      if (name === "stop" && ++stops === 1) listen();
      if (stops === 2) process.exit(0);
    };
  `);
  child.stop();
  expect(await child.exited).toBe(0);
});

test("a process that drains is sent no pings, however long it takes", async () => {
  const { child, events } = start(
    `
    let pings = 0;
    const answer = (name) => {
      if (name !== "ping" || ++pings > 1) process.exit(3);
      call("draining");
      setTimeout(() => process.exit(0), 3000);
    };
    listen();
  `,
    { intervalMs: 500, maxMissed: 3 },
  );
  expect(await child.leaving).toBeUndefined();
  expect(await child.exited).toBe(0);
  expect(events).toEqual(["added", "removed"]);
});

test("a process that does not reply to pings is reported as unresponsive", async () => {
  const { child, events } = start(`const answer = () => {}; listen();`, { intervalMs: 20, maxMissed: 2 });
  await child.listening;
  while (!events.includes("unresponsive")) await Bun.sleep(5);
  child.kill();
  expect(await child.exited).toBe(137);
});

test("a call that the process did not answer before its exit fails at once", async () => {
  const { child } = start(`const answer = () => process.exit(7); listen();`);
  await child.listening;
  expect(await rejectionOf(child.metrics())).toMatchObject({ message: "the other process is gone" });
  expect(await child.leaving).toBe(7);
});

test("a process has left the sums when its exit is reported", async () => {
  const { child, events } = start(
    `const answer = () => {}; listen(); call("finalMetrics", []); setTimeout(() => process.exit(0), 50);`,
  );
  expect(await child.exited).toBe(0);
  expect(events).toEqual(["added", "final metrics", "removed"]);
});
