import fc from "fast-check";
import { describe, expect, test } from "bun:test";
import { createLog, createLogWriter, type LogOptions, maxWaiting } from "../../src/log/log.ts";

const logged = (options: Partial<LogOptions>, act: (log: ReturnType<typeof createLog>) => void): string => {
  let text = "";
  const write = (line: string): void => void (text += line);
  act(createLog({ level: "info", format: "json", clock: () => 0, write, ...options }));
  return text;
};

describe("createLog", () => {
  test("writes one JSON object per line", () => {
    const text = logged({}, (log) => log.info("request", { status: 200, path: "/v1/models", keyId: undefined }));
    expect(text).toEndWith("}\n");
    expect(JSON.parse(text)).toEqual({
      time: "1970-01-01T00:00:00.000Z",
      level: "info",
      message: "request",
      status: 200,
      path: "/v1/models",
    });
  });

  test("writes the common fields into each entry", () => {
    const text = logged({ always: { pid: 7 } }, (log) => log.info("request", { status: 200 }));
    expect(JSON.parse(text)).toMatchObject({ message: "request", pid: 7, status: 200 });
  });

  test("leaves out entries below its level", () => {
    const text = logged({ level: "warn" }, (log) => {
      log.debug("a");
      log.info("b");
      log.warn("c");
      log.error("d");
    });
    expect(
      text
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line).message),
    ).toEqual(["c", "d"]);
  });

  test("quotes a field in pretty format only if necessary", () => {
    const text = logged({ format: "pretty" }, (log) =>
      log.info("request", { path: "/v1/a b", method: "GET", ms: 1.5 }),
    );
    expect(text).toBe(`00:00:00.000 INFO  request path="/v1/a b" method=GET ms=1.5\n`);
  });

  test.each(["pretty", "json"] as const)("escapes control characters in %s format", (format) => {
    const text = logged({ format }, (log) =>
      log.info("request", { path: "/v1/\u001b[2J\r\nfake\u009b\u2028\u202e\u2066" }),
    );
    expect(text.slice(0, -1)).toMatch(/^[\x20-\x7e]+$/);
    expect(text.split("\n")).toHaveLength(2);
  });

  test("cuts long fields, and keeps the short ones and the order", () => {
    const fields = { status: 404, path: `/v1/${"x".repeat(16_000)}`, model: "m" };
    const text = logged({}, (log) => log.info("Request ended", fields));
    const { path, ...rest } = JSON.parse(text);
    expect(path).toMatch(/^\/v1\/x{1000,}…$/);
    expect(rest).toMatchObject({ message: "Request ended", status: 404, model: "m" });
    expect(Object.keys(JSON.parse(text))).toEqual(["time", "level", "message", "status", "path", "model"]);
  });

  test("leaves a line of 2048 bytes as it is", () => {
    const overhead = logged({}, (log) => log.info("m", { path: "" })).length;
    const path = "x".repeat(2048 - overhead);
    const text = logged({}, (log) => log.info("m", { path }));
    expect(text).toHaveLength(2048);
    expect(JSON.parse(text).path).toBe(path);
    expect(JSON.parse(logged({}, (log) => log.info("m", { path: `${path}x` }))).path).toEndWith("x…");
  });

  const values = fc.oneof(fc.string({ unit: "binary", maxLength: 5000, size: "max" }), fc.double(), fc.boolean());
  test.each(["pretty", "json"] as const)("writes no line over 2048 bytes in %s format", (format) => {
    fc.assert(
      fc.property(
        fc.string({ size: "max", maxLength: 5000 }),
        fc.dictionary(fc.string(), values),
        (message, fields) => {
          const text = logged({ format }, (log) => log.info(message, fields));
          expect(Buffer.byteLength(text)).toBeLessThanOrEqual(2048);
          expect(text.split("\n")).toHaveLength(2);
          if (format === "json") JSON.parse(text);
        },
      ),
    );
  });

  test("writes a line even if it has more fields than fit", () => {
    const fields = Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`field${n}`, n]));
    const text = logged({}, (log) => log.error("Too much", fields));
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(2048);
    expect(JSON.parse(text)).toMatchObject({ level: "error", message: "Too much" });
  });
});

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
