import { describe, expect, test } from "bun:test";
import { quickStarts } from "../../../console/src/start/quick-start-lines.ts";

const values = { origin: "https://llm.example.com", key: "k-123", model: "served-model" };
const textOf = (id: string, changed: Partial<typeof values> = {}): string =>
  quickStarts({ ...values, ...changed }).find((lines) => lines.id === id)?.text ?? "";

describe("the lines of the quick start", () => {
  test.each(quickStarts(values).map(({ id }) => [id]))("for %s name the server and the model", (id) => {
    expect(textOf(id)).toContain(values.origin);
    expect(textOf(id)).toContain(values.model);
  });

  test("have each client once", () => {
    const ids = quickStarts(values).map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test("give the Anthropic clients the address without /v1, which they add", () => {
    for (const id of ["anthropic-python", "anthropic-node", "claude-code"]) expect(textOf(id)).not.toContain("/v1");
  });

  test.each(["a'b", 'a"b', "a$(b)`c`", String.raw`a\b`])("quote the key %s for a shell", async (key) => {
    const command = textOf("claude-code", { key }).replace(/ claude$/, "");
    const shell = Bun.spawn(["sh", "-c", `${command} sh -c 'printf %s "$ANTHROPIC_AUTH_TOKEN"'`]);
    expect(await new Response(shell.stdout).text()).toBe(key);
  });

  test("set every model of Claude Code, which asks for one of each size", async () => {
    const command = textOf("claude-code", { model: "a model" }).replace(/ claude$/, "");
    const shell = Bun.spawn(["sh", "-c", `${command} env`]);
    const environment = (await new Response(shell.stdout).text()).split("\n");
    for (const name of ["MODEL", "DEFAULT_HAIKU_MODEL", "DEFAULT_SONNET_MODEL", "DEFAULT_OPUS_MODEL"]) {
      expect(environment).toContain(`ANTHROPIC_${name}=a model`);
    }
  });

  test("quote the key for JavaScript", () => {
    expect(textOf("openai-node", { key: 'a"b' })).toContain(String.raw`apiKey: "a\"b"`);
  });
});
