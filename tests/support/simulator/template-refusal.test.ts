import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { startSimulator } from "./simulator.ts";
import { findTemplateRefusal } from "./template-refusal.ts";

const head = "System message must be at the beginning.";
const tool = "'type' of tool must be 'function'";
const turns = (...roles: string[]): object[] => roles.map((role) => ({ role, content: "c" }));

test.each([
  [{ messages: turns("system", "user", "assistant") }, undefined],
  [{ messages: turns("user", "system") }, head],
  [{ messages: turns("system", "system", "user") }, head],
  [{ system: "You", messages: turns("system", "user") }, head],
  [{ system: [], messages: turns("system", "user") }, undefined],
  [{ messages: turns("developer", "user") }, "Unexpected message role."],
  [{ input: [...turns("system", "user"), { type: "function_call" }], tools: [{ type: "function" }] }, undefined],
  [{ input: turns("user"), tools: [{ type: "web_search" }] }, tool],
  [{ instructions: "You", input: turns("system") }, head],
  [{ input: "Hi" }, undefined],
])("of %j a strict template says %p", (body, refusal) => {
  expect(findTemplateRefusal(body, "/v1/responses")).toBe(refusal);
});

test("the simulator refuses so on demand, in the error shape of the path", async () => {
  using strict = startSimulator({ isStrict: true });
  using lenient = startSimulator();
  const body = JSON.stringify({ model: "m", max_tokens: 1, messages: turns("user", "system") });
  const send = async (url: string, script: string): Promise<unknown> =>
    await (await fetch(`${url}/v1/messages`, { method: "POST", body, headers: { "x-simulate": script } })).json();
  const refusal = { type: "error", error: { type: "invalid_request_error", message: head } };
  expect(await send(strict.url, "")).toEqual(refusal);
  expect(await send(lenient.url, "strict")).toEqual(refusal);
  expect(await send(lenient.url, "")).toMatchObject({ type: "message" });
});

test("what Claude Code and Codex really send is refused", () => {
  const folder = `${import.meta.dir}/../../fixtures/client-requests`;
  const refusals = readdirSync(folder).map((name) => {
    const { program, requests } = JSON.parse(readFileSync(`${folder}/${name}`, "utf8")) as {
      program: string;
      requests: { path: string; body: Record<string, unknown> }[];
    };
    const last = requests.at(-1);
    return [program, last && findTemplateRefusal(last.body, last.path)] as const;
  });
  expect(Object.fromEntries(refusals)).toEqual({
    "Claude Code 2.1.178": head,
    "Claude Code 2.1.280": head,
    "Claude Code 2.1.330": head,
    "Claude Code 2.1.332": head,
    "Codex 0.169.0": "Unexpected message role.",
    "opencode 1.18.33": undefined,
  });
});
