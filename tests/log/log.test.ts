import { describe, expect, test } from "bun:test";
import { createLog, type LogOptions } from "../../src/log/log.ts";

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
    const text = logged({ format }, (log) => log.info("request", { path: "/v1/\u001b[2J\r\nfake\u009b\u2028" }));
    expect(text.slice(0, -1)).toMatch(/^[\x20-\x7e]+$/);
    expect(text.split("\n")).toHaveLength(2);
  });
});
