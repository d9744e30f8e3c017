import { describe, expect, test } from "bun:test";
import { clientOf } from "../support/client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startProgramWithKey } from "../support/program-with-key.ts";
import { startBackends } from "../support/several-backends.ts";
import { startTollgate } from "../support/tollgate.ts";

const system = { role: "system", content: "You are a coding agent. ".repeat(200) };

/** The messages of a conversation up to its turn. */
const messagesOf = (conversation: string, turn: number) => [
  system,
  ...Array.from({ length: turn + 1 }, (_, n) => ({ role: "user", content: `${conversation}: step ${n}` })),
];

interface Sent {
  backend: string | null;
  reason: string | null;
  expectedCache: string | null;
  cachedTokens: string | null;
}

function senderTo({ url, key }: { url: string; key: string }) {
  return async (messages: object[], headers: Record<string, string> = {}): Promise<Sent> => {
    const sent = { headers: { ...headers, "x-tollgate-debug": "1" } };
    const body = { model: "m", max_tokens: 2, messages };
    const response = await clientOf(url, key).send("/v1/chat/completions", body, sent);
    await response.arrayBuffer();
    const { headers: got } = response;
    return {
      backend: got.get("x-tollgate-backend"),
      reason: got.get("x-tollgate-reason"),
      expectedCache: got.get("x-tollgate-expected-cache"),
      cachedTokens: got.get("x-tollgate-cached-tokens"),
    };
  };
}

const startInProcess = (file: string) => startTollgate({ MODELS_FILE: file });

async function startSeveralProcesses(file: string) {
  const program = await startProgramWithKey(undefined, { MODELS_FILE: file, PROCESSES: "2" });
  return { ...program, [Symbol.asyncDispose]: async () => void (await program.stop()) };
}

const names = Array.from({ length: 12 }, (_, n) => `conversation ${n}`);

describe("with several backends, a conversation", () => {
  test.each([
    ["known by its beginning", () => ({})],
    ["named by its client", (name: string) => ({ "x-session-id": name })],
  ])("%s stays where it was, and others share the backends", async (_, headersOf) => {
    using backends = startBackends({ a: "", b: "", c: "" });
    await using gate = await startTollgate({ MODELS_FILE: backends.file });
    const send = senderTo(gate);
    // At once, so that each backend has some.
    const first = await Promise.all(names.map((name) => send(messagesOf(name, 0), headersOf(name))));
    expect(new Set(first.map(({ backend }) => backend)).size).toBe(3);
    for (const turn of [1, 2]) {
      for (const [n, name] of names.entries()) {
        const { backend, reason } = await send(messagesOf(name, turn), headersOf(name));
        expect([name, backend, reason]).toEqual([name, first[n]?.backend ?? "", "session"]);
      }
    }
  });

  test("of a session is cached as far as it was read, whatever else its session asked meanwhile", async () => {
    using backends = startBackends({ a: "", b: "" });
    await using gate = await startTollgate({ MODELS_FILE: backends.file });
    const send = senderTo(gate);
    const session = { "x-claude-code-session-id": "one" };
    const first = await send(messagesOf("task", 0), session);
    for (const side of ["a title", "a sub-agent"]) await send([{ role: "user", content: side }], session);
    const { backend, reason, expectedCache } = await send(messagesOf("task", 1), session);
    expect([backend, reason]).toEqual([first.backend, "session"]);
    expect(Number(expectedCache)).toBeGreaterThan(0.85);
  });

  test("is all that its client is told of: that another key has sent the same instructions, the operator alone sees", async () => {
    using backends = startBackends({ a: "", b: "" });
    await using gate = await startTollgate({ MODELS_FILE: backends.file });
    const { key } = await gate.admin.createKey("stranger");
    const [send, sendAsStranger] = [senderTo(gate), senderTo({ url: gate.url, key })];
    await send(messagesOf("one", 0));
    const found = await sendAsStranger(messagesOf("two", 0));
    const [, ...unknown] = messagesOf("three", 0);
    const other = await sendAsStranger([{ role: "system", content: "You paint. ".repeat(400) }, ...unknown]);
    expect([found.reason, found.expectedCache]).toEqual([other.reason, other.expectedCache]);
    expect([found.reason, found.expectedCache]).toEqual(["load", "0.00"]);
    const own = await sendAsStranger(messagesOf("two", 1));
    expect([own.reason, Number(own.expectedCache) > 0.9]).toEqual(["session", true]);
    const explained = {
      path: "/v1/chat/completions",
      body: JSON.stringify({ model: "m", messages: messagesOf("two", 1) }),
    };
    const { goes_to: goesTo } = await (await gate.admin.request("POST", "/api/explain", explained)).json();
    expect(goesTo).toEqual({ backend: expect.any(String), reason: "load" });
    const list = gate.admin.listRequests;
    await pollUntil(async () => (await list()).length === 4);
    expect((await list()).toReversed().map(({ reason }) => reason)).toEqual(["load", "prefix", "load", "session"]);
  });

  test("has in its row, its response and the figures of its backend what was expected of the cache", async () => {
    using backends = startBackends({ a: "", b: "" });
    await using gate = await startTollgate({ MODELS_FILE: backends.file });
    const send = senderTo(gate);
    const usage = (tokens: string) => ({ "x-simulate": `usage=${tokens}` });
    const first = await send(messagesOf("one", 0), usage("1000,2,0"));
    const second = await send(messagesOf("one", 1), usage("1000,2,990"));
    expect(first.expectedCache).toBe("0.00");
    expect([first.cachedTokens, second.cachedTokens]).toEqual([null, "990"]);
    expect([second.backend, Number(second.expectedCache) > 0.9]).toEqual([first.backend, true]);
    await pollUntil(async () => (await gate.admin.listRequests()).length === 2);
    const requests = await gate.admin.listRequests();
    const share = Number(second.expectedCache);
    expect(requests.map((one) => one.cached_input_tokens)).toEqual([990, null]);
    const [latest = 0, earliest] = requests.map((one) => one.expected_cached_tokens ?? Number.NaN);
    expect(earliest).toBe(0);
    expect(Math.abs(latest - 1000 * share)).toBeLessThan(6);
    const text = await (await gate.admin.request("GET", "/metrics")).text();
    expect(text).toContain(
      `tollgate_backend_expected_cached_input_tokens_total{backend="${second.backend}"} ${latest}\n`,
    );
    await pollUntil(async () => {
      const { backends: listed } = await (await gate.admin.request("GET", "/api/backends")).json();
      const used = listed.find(({ name }: { name: string }) => name === second.backend);
      return used.expected_cached_share === latest / 2000 && used.cached_share === 990 / 2000;
    });
  });

  test.each([
    ["one process", startInProcess],
    ["several processes", startSeveralProcesses],
  ] as const)(
    "is expected to be cached as far as its backend reports to keep what it has read: %s",
    async (_, start) => {
      using backends = startBackends({ a: "", b: "" });
      await using gate = await start(backends.file);
      const send = senderTo(gate);
      const cached = (tokens: number) => ({ "x-simulate": `usage=1000,2,${tokens}` });
      for (const turn of [0, 1]) await send(messagesOf("one", turn), cached(900 * turn));
      expect(Number((await send(messagesOf("one", 2), cached(300))).expectedCache)).toBeGreaterThan(0.9);
      for (let turn = 3; turn < 40; turn++) await send(messagesOf("one", turn), cached(300));
      const { expectedCache, reason } = await send(messagesOf("one", 40), cached(300));
      expect(reason).toBe("session");
      expect(Number(expectedCache)).toBeWithin(0.3, 0.6);
    },
  );

  test("has in its rows why what should have come from a cache did not", async () => {
    using backends = startBackends({ a: "", b: "" });
    await using gate = await startTollgate({ MODELS_FILE: backends.file });
    const send = senderTo(gate);
    const usage = (cached: number) => ({ "x-simulate": `usage=2000,2,${cached}` });
    const other = [{ role: "system", content: `It is noon. ${system.content}` }, ...messagesOf("one", 5).slice(1)];
    const edited = messagesOf("one", 6).with(2, { role: "user", content: "(taken out)" });
    await send(messagesOf("one", 0), usage(0));
    await send(messagesOf("one", 1), usage(0));
    await send(messagesOf("one", 2), usage(1900));
    await send(messagesOf("one", 3), usage(0));
    await send(messagesOf("one", 4), usage(100));
    await send(other, usage(0));
    await send(edited, usage(0));
    const list = gate.admin.listRequests;
    await pollUntil(async () => (await list()).length === 7);
    const rows = (await list()).toReversed();
    expect(rows.map((one) => one.cache_loss)).toEqual([
      // Of the first two nothing is known: the backend had never reported any cached input.
      null,
      null,
      null,
      "evicted",
      "evicted",
      "system_changed",
      // That the system prompt was changed back says more.
      "system_changed",
    ]);
    const [conversation] = new Set(rows.map((one) => one.conversation));
    expect(conversation).toBeGreaterThan(0);
    expect(new Set(rows.map((one) => one.conversation)).size).toBe(1);
    expect(await list(`?conversation=${conversation}`)).toHaveLength(7);
    expect(await list("?conversation=1")).toEqual([]);
  });

  test.each([
    ["of Messages", "", "100,2,900"],
    ["of a backend whose input has it", "cached_in_input: true", "1000,2,900"],
    ["of one that says so and has more cached than input", "cached_in_input: true", "100,2,900"],
  ])("counts and charges cached input as input, once: %s", async (_, members, usage) => {
    using backends = startBackends({ a: members, b: members });
    await using gate = await startTollgate({ MODELS_FILE: backends.file });
    const { id, key } = await gate.admin.createKey("limited", { tokens_per_day: 1e6 });
    for (const [own, stream] of [
      [gate.key, false],
      [key, true],
    ] as const) {
      const body = { model: "m", max_tokens: 2, stream, messages: [{ role: "user", content: "Hello" }] };
      await (await gate.send("/v1/messages", body, { key: own, script: `usage=${usage}` })).bytes();
    }
    await pollUntil(async () => {
      const { backends: listed } = await (await gate.admin.request("GET", "/api/backends")).json();
      return listed.some((one: { cached_share: number | null }) => one.cached_share === 0.9);
    });
    const text = await (await gate.admin.request("GET", "/metrics")).text();
    const counted = [...text.matchAll(/^tollgate_backend_input_tokens_total\{.*\} (\d+)$/gm)];
    expect(counted.reduce((sum, [, tokens]) => sum + Number(tokens), 0)).toBe(2000);
    expect((await gate.admin.listKeys()).find((one) => one.id === id)?.used["tokens_per_day"]).toBe(1002);
  });
});
