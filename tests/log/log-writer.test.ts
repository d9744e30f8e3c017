import { expect, test } from "bun:test";
import { createLogWriter, maxWaiting } from "../../src/log/log.ts";

const ignoreDropped = (): void => {};

test("writes the lines of one tick in one call, in order", async () => {
  const written: string[] = [];
  const write = createLogWriter((text) => written.push(text), ignoreDropped);
  write("a\n");
  await Promise.resolve();
  write("b\n");
  expect(written).toEqual([]);
  await new Promise(setImmediate);
  expect(written).toEqual(["a\nb\n"]);
  write("c\n");
  await new Promise(setImmediate);
  await new Promise(setImmediate);
  expect(written).toEqual(["a\nb\n", "c\n"]);
});

test("writes pending lines when the program exits", async () => {
  const module = new URL("../../src/log/log.ts", import.meta.url).href;
  const program = `
    const { createLogWriter } = await import(${JSON.stringify(module)});
    const write = createLogWriter((text) => process.stdout.write(text), () => {});
    write("last words\\n");
    process.exit(3);`;
  const child = Bun.spawn([process.execPath, "-e", program], { stdout: "pipe" });
  expect(await new Response(child.stdout).text()).toBe("last words\n");
  expect(await child.exited).toBe(3);
});

test("lines that a reader leaves unread for too long are dropped, counted, and do not fill the memory", async () => {
  const ends: (() => void)[] = [];
  let held = 0;
  const dropped: number[] = [];
  const write = createLogWriter(
    (text, written) => {
      held += text.length;
      ends.push(written);
    },
    (lines) => dropped.push(lines),
  );
  const line = `${"x".repeat(2 ** 20 - 1)}\n`;
  for (let count = 0; count < 12; count++) {
    write(line);
    await new Promise(setImmediate);
  }
  expect(held).toBe(maxWaiting + line.length);
  expect(dropped).toEqual([]);
  ends.shift()?.();
  expect(dropped).toEqual([3]);
  write(line);
  await new Promise(setImmediate);
  expect(ends).toHaveLength(9);
});
