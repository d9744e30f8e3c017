import { describe, expect, test } from "bun:test";
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
}

function senderTo({ url, key }: { url: string; key: string }) {
  return async (messages: object[], headers: Record<string, string> = {}): Promise<Sent> => {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { ...headers, "x-api-key": key, "content-type": "application/json", "x-tollgate-debug": "1" },
      body: JSON.stringify({ model: "m", max_tokens: 2, messages }),
    });
    await response.arrayBuffer();
    const { headers: got } = response;
    return { backend: got.get("x-tollgate-backend"), reason: got.get("x-tollgate-reason") };
  };
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
});
