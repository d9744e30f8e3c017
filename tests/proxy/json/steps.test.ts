import { describe, expect, test } from "bun:test";
import {
  createPortions,
  maxBlockBytes,
  maxBytesAtOnce,
  runAtOnce,
  runByLength,
  runInPortions,
  type Steps,
} from "../../../src/proxy/json/read.ts";

/** Each step takes a millisecond of the test's clock. */
function createSteps(count: number, clock: { ms: number }): Steps<string> {
  return (function* steps() {
    for (let step = 0; step < count; step += 1) {
      clock.ms += 1;
      yield;
    }
    return "result";
  })();
}

test("steps run at once give their result", () => {
  expect(runAtOnce(createSteps(5, { ms: 0 }))).toBe("result");
});

test("steps run in portions wait whenever a portion is over", async () => {
  const clock = { ms: 0 };
  const turns: number[] = [];
  const waitForTurn = () => Promise.resolve(void turns.push(clock.ms));
  expect(await runInPortions(createSteps(10, clock), { portionMs: 3, now: () => clock.ms, waitForTurn })).toBe(
    "result",
  );
  expect(turns).toEqual([0, 3, 6, 9]);
});

describe("what is done with a text", () => {
  const run = (stepCount: number, bytes: number) => {
    const clock = { ms: 0 };
    const turns: number[] = [];
    const waitForTurn = () => Promise.resolve(void turns.push(clock.ms));
    const result = runByLength(createSteps(stepCount, clock), bytes, undefined, {
      portionMs: 3,
      now: () => clock.ms,
      waitForTurn,
    });
    return { result, turns };
  };

  test("is done at once if it is short", () => {
    expect(run(2, maxBytesAtOnce)).toEqual({ result: "result", turns: [] });
    // A block: to ask for the time would cost more than to read most of them.
    expect(run(9, maxBlockBytes)).toEqual({ result: "result", turns: [] });
  });

  test("is done in portions if it is long", async () => {
    const { result, turns } = run(3, maxBytesAtOnce + 1);
    expect(await result).toBe("result");
    expect(turns).toEqual([0, 3]);
  });

  test("goes on in portions if it is short and takes long", async () => {
    const { result, turns } = run(9, maxBytesAtOnce);
    expect(await result).toBe("result");
    expect(turns).toEqual([6, 9]);
  });
});

test("an error in a step rejects", async () => {
  const steps = (function* fail(): Steps<void> {
    yield;
    throw new Error("broken");
  })();
  const running = runInPortions(steps, { portionMs: 1, now: () => 0, waitForTurn: () => Promise.resolve() });
  await expect(running).rejects.toThrow("broken");
});

describe("computations that share portions", () => {
  test("take turns", async () => {
    const { waitForTurn } = createPortions(0);
    const order: string[] = [];
    const run = async (name: string): Promise<void> => {
      for (let turn = 0; turn < 3; turn += 1) {
        await waitForTurn();
        order.push(`${name}${turn}`);
      }
    };
    await Promise.all(["a", "b", "c"].map(run));
    expect(order).toEqual(["a0", "b0", "c0", "a1", "b1", "c1", "a2", "b2", "c2"]);
  });

  test("take turns by party, however many one has", async () => {
    const { waitForTurn } = createPortions(0);
    const order: string[] = [];
    const run = async (name: string, party: number): Promise<void> => {
      for (let turn = 0; turn < 2; turn += 1) {
        await waitForTurn(party);
        order.push(`${name}${turn}`);
      }
    };
    await Promise.all([...["a", "b", "c"].map((name) => run(name, 1)), run("x", 2)]);
    expect(order).toEqual(["a0", "x0", "b0", "x1", "c0", "a1", "b1", "c1"]);
  });

  test("run one at a time, with a gap after each portion", async () => {
    const portions = createPortions(5);
    const startedAt: number[] = [];
    const run = async (): Promise<void> => {
      for (let turn = 0; turn < 3; turn += 1) {
        await portions.waitForTurn();
        startedAt.push(performance.now());
      }
    };
    await Promise.all([run(), run()]);
    const gaps = startedAt.slice(1).map((ms, index) => ms - (startedAt[index] ?? 0));
    // A timer may be early by less than a millisecond.
    expect(Math.min(...gaps)).toBeGreaterThan(5);
  });

  test("start in the same tick if no other ran just before", async () => {
    const { waitForTurn } = createPortions(1000);
    const started = waitForTurn();
    await new Promise((resolve) => setImmediate(resolve));
    expect(Bun.peek.status(started)).toBe("fulfilled");
  });
});
