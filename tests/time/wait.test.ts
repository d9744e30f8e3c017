import { describe, expect, test } from "bun:test";
import { within } from "../../src/time/wait.ts";

const tooLate = (): Error => new Error("too late");
const never = new Promise<never>(() => {});

describe("within", () => {
  test("gives the result of work that ends in time", async () => {
    expect(await within(60_000, Promise.resolve("done"), tooLate)).toBe("done");
  });

  test("passes on the error of work that fails in time", async () => {
    const work = Promise.reject(new Error("failed"));
    await expect(within(60_000, work, tooLate)).rejects.toThrow("failed");
  });

  test("rejects when the work takes longer", async () => {
    await expect(within(1, never, tooLate)).rejects.toThrow("too late");
  });

  test("leaves no rejection unhandled if late work fails", async () => {
    const work = Promise.withResolvers<string>();
    await expect(within(1, work.promise, tooLate)).rejects.toThrow("too late");
    work.reject(new Error("failed"));
    await new Promise(setImmediate);
  });
});
