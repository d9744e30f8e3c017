import { expect, test } from "bun:test";
import { createLogWriter } from "../../src/log/log-writer.ts";

test("writes the lines of one tick in one call, in order", async () => {
  const written: string[] = [];
  const write = createLogWriter((text) => written.push(text));
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
  const module = new URL("../../src/log/log-writer.ts", import.meta.url).href;
  const program = `
    const { createLogWriter } = await import(${JSON.stringify(module)});
    const write = createLogWriter((text) => process.stdout.write(text));
    write("last words\\n");
    process.exit(3);`;
  const child = Bun.spawn([process.execPath, "-e", program], { stdout: "pipe" });
  expect(await new Response(child.stdout).text()).toBe("last words\n");
  expect(await child.exited).toBe(3);
});
