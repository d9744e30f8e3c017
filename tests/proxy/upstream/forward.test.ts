import { describe, expect, test } from "bun:test";
import {
  createForward,
  type Forward,
  type UpstreamRequest,
  type UpstreamFetch,
} from "../../../src/proxy/upstream/forward.ts";
import { createReadTimeouts } from "../../../src/proxy/upstream/read-timeout.ts";

interface Options {
  fetch: UpstreamFetch;
  baseUrl?: string;
  stopping?: AbortSignal;
  monotonic?: () => number;
}

function forwardWith({ fetch, baseUrl = "http://up.example", stopping, monotonic = () => 0 }: Options): Forward {
  return createForward({
    baseUrl,
    fetch,
    monotonic,
    connectTimeout: { watch: () => () => {} },
    startReadTimeout: createReadTimeouts(() => performance.now()),
    stopping: stopping ?? new AbortController().signal,
  });
}

const call = (more: Partial<UpstreamRequest> = {}): UpstreamRequest => ({
  method: "POST",
  pathAndQuery: "/v1/x",
  headers: new Headers(),
  body: "{}",
  readTimeoutMs: 20_000,
  client: new AbortController().signal,
  ...more,
});

/** Answers only once it is aborted, as a silent backend would. */
const silent: UpstreamFetch = (_, { signal }) =>
  new Promise((__, reject) => {
    const fail = (): void => reject(signal?.reason as Error);
    if (signal?.aborted === true) fail();
    signal?.addEventListener("abort", fail);
  });

describe("a call", () => {
  test.each([
    ["http://up.example", "@evil.example/v1/x"],
    ["http://up.example", ".evil.example/v1/x"],
    ["http://up.example", "/v1/../x"],
    ["http://up.example/team", "/v1/../../v1/x"],
    ["http://up.example/team", "/v1x"],
  ])("below %s never goes to %s, whoever let that pass", async (baseUrl, pathAndQuery) => {
    const asked: string[] = [];
    const fetch: UpstreamFetch = async (url) => {
      asked.push(url);
      return new Response();
    };
    await expect(forwardWith({ baseUrl, fetch })(call({ pathAndQuery }))).rejects.toThrow("outside");
    expect(asked).toEqual([]);
  });

  test("of a client that has left already ends at once", async () => {
    const forward = forwardWith({ fetch: silent });
    await expect(forward(call({ client: AbortSignal.abort() }))).rejects.toMatchObject({ outcome: "client_left" });
  });

  test("that comes behind the stop ends at once", async () => {
    const forward = forwardWith({ fetch: silent, stopping: AbortSignal.abort() });
    await expect(forward(call())).rejects.toMatchObject({ code: "shutting_down" });
  });
});

describe("a connection that is reset", () => {
  const reset = Object.assign(new Error("reset"), { code: "ECONNRESET" });

  /** How often the backend is asked, where it resets every connection but the first; each try takes that long. */
  async function countTries(
    more: Partial<UpstreamRequest>,
    tookMs: number,
    before: "answered" | "nothing",
  ): Promise<number> {
    let now = 0;
    let tries = 0;
    const fetch: UpstreamFetch = async () => {
      if (tries++ === 0 && before === "answered") return new Response();
      now += tookMs;
      throw reset;
    };
    const forward = forwardWith({ fetch, monotonic: () => now });
    if (before === "answered") (await forward(call())).release();
    const triesBefore = tries;
    await expect(forward(call(more))).rejects.toMatchObject({ code: "upstream_unreachable" });
    return tries - triesBefore;
  }

  test("at once, where it may have been kept from before, is tried once more", async () => {
    expect(await countTries({}, 1, "answered")).toBe(2);
  });

  test("is not tried again where none can have been kept, nor where the backend took its time", async () => {
    expect(await countTries({}, 1, "nothing")).toBe(1);
    expect(await countTries({}, 300, "answered")).toBe(1);
  });

  test("is not tried again with a body that was sent as it came", async () => {
    const body = new ReadableStream<Uint8Array<ArrayBuffer>>({ start: (controller) => controller.close() });
    expect(await countTries({ body }, 1, "answered")).toBe(1);
  });
});
