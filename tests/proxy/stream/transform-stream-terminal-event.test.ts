import { describe, expect, test } from "bun:test";
import { passTicks } from "../../support/event-loop.ts";
import { five, readText, startMeter, text, usageEvent, utf8, write } from "./start-meter.ts";
import type { Usage } from "../../../src/domain/usage.ts";

describe("a meter that holds the terminal event", () => {
  const done = "data: [DONE]\n\n";

  test("sends it once the usage before it is committed, and the rest after it", async () => {
    const committed = Promise.withResolvers<void>();
    const commits: Usage[] = [];
    const { meter, writer, finishes } = startMeter({
      commit(usage) {
        commits.push(usage);
        return committed.promise;
      },
    });
    const reader = meter.readable.getReader();
    write(writer, Buffer.concat([utf8.encode("data: a\n\n"), usageEvent, utf8.encode(`${done}: bye\n\n`)]));
    expect(await readText(reader)).toBe(`data: a\n\n${text.decode(usageEvent)}`);
    let received = "";
    const next = readText(reader).then((piece) => (received = piece));
    await passTicks();
    expect([commits, received]).toEqual([[five], ""]);
    committed.resolve();
    expect(await next).toBe(`${done}: bye\n\n`);
    void writer.close();
    expect(await readText(reader)).toBe("(end)");
    expect(finishes).toEqual([{ usage: five, cause: undefined }]);
  });

  test("commits nothing early in a stream without one, and sends its unfinished end after how it finished", async () => {
    let commits = 0;
    const settled = Promise.withResolvers<void>();
    const { meter, writer } = startMeter({
      commit: async () => void commits++,
      finish: () => settled.promise,
    });
    const reader = meter.readable.getReader();
    write(writer, "data: a\n\ndata: [DONE]\n");
    void writer.close();
    expect(await readText(reader)).toBe("data: a\n\n");
    let received = "";
    const next = readText(reader).then((piece) => (received = piece));
    await passTicks();
    expect([commits, received]).toEqual([0, ""]);
    settled.resolve();
    expect(await next).toBe("data: [DONE]\n");
    expect(await readText(reader)).toBe("(end)");
  });
});
