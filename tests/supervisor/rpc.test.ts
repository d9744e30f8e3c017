import { expect, test } from "bun:test";
import { createRpc, type Rpc } from "../../src/supervisor/rpc.ts";
import { rejectionOf } from "../support/rejection.ts";

const deadlineMs = 20_000;

interface Adder {
  add(a: number, b: number): number;
  fail(): void;
  never(): Promise<void>;
}

const adder: Adder = {
  add: (a, b) => a + b,
  fail: () => {
    throw new Error("a secret");
  },
  never: () => new Promise(() => {}),
};

/** Two ends of a channel that copies what goes through it, as one between processes does. */
function connect(limitMs = deadlineMs): { asking: Rpc<Adder>; answering: Rpc<object> } {
  const asking: Rpc<Adder> = createRpc<Adder>({}, (sent) => answering.receive(structuredClone(sent)), limitMs);
  const answering: Rpc<object> = createRpc<object>(adder, (sent) => asking.receive(structuredClone(sent)), limitMs);
  return { asking, answering };
}

test("a peer answers each question with its own answer", async () => {
  const { asking } = connect();
  expect(await Promise.all([asking.call("add", 1, 2), asking.call("add", 3, 4)])).toEqual([3, 7]);
});

test("a question fails where the other side fails, and why stays there", async () => {
  const error = await rejectionOf(connect().asking.call("fail"));
  expect(error).toMatchObject({ message: "the other process failed" });
});

test("a question that is not answered fails at its deadline", async () => {
  const error = await rejectionOf(connect(5).asking.call("never"));
  expect(error).toMatchObject({ message: "no answer to never in time" });
});

test("questions fail when the channel closes, and ever after", async () => {
  const { asking } = connect();
  const waiting = rejectionOf(asking.call("never"));
  asking.close();
  expect(await waiting).toMatchObject({ message: "the other process is gone" });
  expect(await rejectionOf(asking.call("add", 1, 2))).toMatchObject({ message: "the other process is gone" });
});

test("a question fails where it cannot be sent", async () => {
  const asking = createRpc<Adder>(
    {},
    () => {
      throw new Error("closed");
    },
    deadlineMs,
  );
  expect(await rejectionOf(asking.call("add", 1, 2))).toMatchObject({ message: "closed" });
});

test("an answer that nobody waits for any more is dropped", async () => {
  const { asking } = connect();
  asking.receive({ id: 99, answer: 1 });
  expect(await asking.call("add", 1, 1)).toBe(2);
});
