import { expect, test } from "bun:test";
import { createRpc, type Rpc } from "../../src/supervisor/rpc.ts";
import { rejectionOf } from "../support/rejection.ts";

const timeoutMs = 20_000;

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

/** Two ends of a channel that copies its messages, as a channel between processes does. */
function connect(limitMs = timeoutMs): { caller: Rpc<Adder>; callee: Rpc<object> } {
  const caller: Rpc<Adder> = createRpc<Adder>({}, (sent) => callee.receive(structuredClone(sent)), limitMs);
  const callee: Rpc<object> = createRpc<object>(adder, (sent) => caller.receive(structuredClone(sent)), limitMs);
  return { caller, callee };
}

test("a call fails when the remote method fails, without its error message", async () => {
  const error = await rejectionOf(connect().caller.call("fail"));
  expect(error).toMatchObject({ message: "the other process failed" });
});

test("a call without a reply fails after the timeout", async () => {
  const error = await rejectionOf(connect(5).caller.call("never"));
  expect(error).toMatchObject({ message: "no reply to never in time" });
});
