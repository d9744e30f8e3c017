import { describe, expect, test } from "bun:test";
import { pump } from "../../../src/proxy/response/pump.ts";
import { type AbortReason, revoked, timedOut } from "../../../src/proxy/upstream/abort-reason.ts";
import { createReadTimeouts } from "../../../src/proxy/upstream/forward.ts";
import { useFakeTime } from "../../support/fake-time.ts";
import { readText, startMeter, utf8 } from "../stream/start-meter.ts";

const { now, pass } = useFakeTime();

/** Pumps what `send` gives. */
function startPump(options: Parameters<typeof startMeter>[0] = {}, timeoutMs = 1000) {
  const { meter, writer, finishes } = startMeter(options);
  writer.releaseLock();
  const aborter = new AbortController();
  const abort = (reason: AbortReason): void => aborter.abort(reason);
  let upstream: ReadableStreamDefaultController<Uint8Array> | undefined;
  const body = new ReadableStream<Uint8Array>({ start: (controller) => void (upstream = controller) });
  const readTimeout = createReadTimeouts(now)(timeoutMs, () => abort(timedOut("between_bytes_timeout")));
  void pump(
    {
      response: new Response(body),
      readTimeout,
      signal: aborter.signal,
      abort,
      onBodyRead: () => {},
      release: readTimeout.clear,
    },
    meter,
    { dialect: undefined, requestId: "r-1", onFirstByte: () => {} },
  );
  return {
    send: (text: string): void => upstream?.enqueue(utf8.encode(text)),
    close: (): void => upstream?.close(),
    end: (): void => abort(revoked(1)),
    reader: meter.readable.getReader(),
    /** Why it was ended. */
    outcome: (): unknown => (aborter.signal.reason as AbortReason | undefined)?.outcome,
    finishes,
  };
}

describe("a client", () => {
  test.each([
    [1000, 60_000],
    [1_200_000, 1_200_000],
  ])(
    "that takes nothing, with a read timeout of %i ms, counts after %i ms as one that left",
    async (timeoutMs, limitMs) => {
      const { send, outcome, finishes } = startPump({}, timeoutMs);
      for (let sent = 0; sent < 5; sent++) send("data: a\n\n");
      await pass(limitMs - 1);
      expect([outcome(), finishes]).toEqual([undefined, []]);
      await pass(1);
      expect(outcome()).toBe("client_left");
      expect(finishes).toMatchObject([{ cause: { outcome: "client_left" } }]);
    },
  );

  test("that reads slowly but steadily gets all of it", async () => {
    const { send, reader, outcome } = startPump({}, 60_000);
    for (let sent = 0; sent < 10; sent++) send(`data: ${sent}\n\n`);
    for (let read = 0; read < 10; read++) {
      await pass(59_000);
      expect(await readText(reader)).toBe(`data: ${read}\n\n`);
    }
    expect(outcome()).toBeUndefined();
  });

  test("that waits for a silent upstream is not to blame", async () => {
    const { send, reader, outcome } = startPump();
    send("data: a\n\n");
    expect(await readText(reader)).toBe("data: a\n\n");
    await pass(1000);
    expect(outcome()).toBe("timed_out");
  });
});

test("a response that waits only for its count ends as a whole one, whoever ends it meanwhile", async () => {
  const settled = Promise.withResolvers<void>();
  const { close, reader, end } = startPump({ finish: () => settled.promise });
  close();
  await pass(0);
  end();
  await pass(100);
  settled.resolve();
  expect(await readText(reader)).toBe("(end)");
});

test("a response that waits for its count longer than the read timeout is not cut", async () => {
  const counted = Promise.withResolvers<void>();
  const { send, close, reader, outcome } = startPump({ finish: () => counted.promise });
  send("data: a\n\n");
  expect(await readText(reader)).toBe("data: a\n\n");
  close();
  await pass(60_000);
  expect(outcome()).toBeUndefined();
  counted.resolve();
  expect(await readText(reader)).toBe("(end)");
});
