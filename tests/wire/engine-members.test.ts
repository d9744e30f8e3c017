import { beforeEach, describe, expect, test } from "bun:test";
import { memberRows, type MemberRow } from "../../src/proxy/rewrite/members-not-allowed.ts";
import { clientOf } from "../support/client.ts";
import { shared } from "../support/shared.ts";
import { startSimulator } from "../support/simulator/simulator.ts";
import { createTempFolder } from "../support/temp-folder.ts";
import { startTollgate } from "../support/tollgate.ts";

const backend = shared(() => startSimulator());
beforeEach(() => backend.clear());

const folder = createTempFolder();
const SECRET_KEY = "0123456789abcdef0123456789abcdef";
const models = `
backends: { a: { url: "URL", priority: ORDER } }
models: { m: { backends: [a], private_cache: team }, own: { backends: [a], private_cache: key }, plain: { backends: [a] } }
`;

async function start(order: string, engineMembers = "pass") {
  const file = folder.file(`${order}-${engineMembers}.yaml`);
  const written = models.replace("URL", backend.url).replace("ORDER", `${order}, engine_members: ${engineMembers}`);
  await Bun.write(file, written);
  return startTollgate({ MODELS_FILE: file, SECRET_KEY });
}

interface Sent {
  priority: number;
  cache_salt?: string;
  extra_key?: string;
}

/** What the backend gets of a body. */
async function sent(url: string, key: string, body: object): Promise<Sent> {
  const chat = { max_tokens: 2, messages: [{ role: "user", content: "Hi" }], ...body };
  await (await clientOf(url, key).send("/v1/chat/completions", chat)).text();
  return backend.requests().at(-1)?.json() as Sent;
}

describe("priority of a backend", () => {
  test.each([
    ["low_first", [-1, 0, 1]],
    ["high_first", [1, 0, -1]],
  ])("tells the engine who comes first: %s", async (order, numbers) => {
    await using gate = await start(order);
    const keys = await Promise.all(
      ["high", null, "low"].map(async (priority) => (await gate.admin.createKey("k", { priority })).key),
    );
    for (const [at, key] of keys.entries()) {
      // A client's own does not arrive, however often it says so.
      const text = `{"model":"plain","priority":-99,"max_tokens":2,"messages":[],"priority":7}`;
      await (await clientOf(gate.url, key).send("/v1/chat/completions", text)).text();
      const body = backend.requests().at(-1)?.body() ?? new Uint8Array();
      expect(
        [
          ...Buffer.from(body)
            .toString()
            .matchAll(/"priority":(-?\d+)/g),
        ].map(([, number]) => Number(number)),
      ).toEqual(Array(2).fill(numbers[at]));
    }
    expect(await sent(gate.url, keys[0] ?? "", { model: "plain", service_tier: "flex" })).toMatchObject({
      priority: numbers[2],
    });
  });
});

describe("private_cache of a model", () => {
  test("gives each team, or key, a salt that survives restarts, and replaces a client's own", async () => {
    const ask = async (): Promise<Record<string, string | undefined>> => {
      await using gate = await start("low_first");
      const { id: team_id } = await gate.admin.expectOk<{ id: number }>("POST", "/api/teams", { name: "ml" });
      const [a, b, c] = [
        await gate.admin.createKey("a", { team_id }),
        await gate.admin.createKey("b", { team_id }),
        await gate.admin.createKey("c"),
      ];
      const saltOf = async ({ key }: { key: string }, model: string) => {
        const body = await sent(gate.url, key, { model, cache_salt: "theirs", extra_key: "theirs" });
        expect(body.extra_key).toBe(body.cache_salt ?? "");
        return body.cache_salt;
      };
      return {
        a: await saltOf(a, "m"),
        b: await saltOf(b, "m"),
        c: await saltOf(c, "m"),
        ownOfA: await saltOf(a, "own"),
        ownOfB: await saltOf(b, "own"),
        plain: await saltOf(a, "plain"),
      };
    };
    const salts = await ask();
    expect(salts["plain"]).toBe("theirs");
    expect(salts["a"]).toBe(salts["b"] ?? "");
    const { a, c, ownOfA, ownOfB } = salts;
    expect(new Set([a, c, ownOfA, ownOfB, "theirs"]).size).toBe(5);
    expect(a).toMatch(/^[\w-]{43}$/);
    expect(await ask()).toEqual(salts);
  });
});

describe("engine_members of a backend", () => {
  const names = Object.entries<MemberRow>(memberRows).flatMap(([name, { rule }]) => (rule === "engine" ? [name] : []));
  const theirs = Object.fromEntries(names.map((name) => [name, "theirs"]));
  const kept = { model: "plain", max_tokens: 2, messages: [], rids: 1, extra_body: { top_p: 1 } };

  test.each(["pass", "drop"])("%s: so it does with what clients tell the engine", async (engineMembers) => {
    await using gate = await start("low_first", engineMembers);
    const { key } = await gate.admin.createKey("k", { priority: "high" });
    const body = { rid: "first", ...kept, extra_body: { ...theirs, top_p: 1 }, ...theirs };
    const got = await sent(gate.url, key, body);
    // Ours is there all the same, and no other place has one that some backend prefers.
    const { priority: _, ...others } = theirs;
    const passed = { ...kept, ...others, priority: -1, extra_body: { ...others, top_p: 1 } };
    expect(got as object).toEqual(engineMembers === "pass" ? passed : { ...kept, priority: -1 });
  });

  test("drop: a limit of tokens, and a body of nothing else, do not change that", async () => {
    await using gate = await start("low_first", "drop");
    const { key } = await gate.admin.createKey("k", { tokens_per_day: 1_000_000 });
    const text = JSON.stringify({ extra_body: theirs, ...theirs });
    await (await clientOf(gate.url, key).send("/v1/x", text)).text();
    expect(backend.requests().at(-1)?.json()).toEqual({ extra_body: {}, priority: 0 });
  });
});
