import { describe, expect, test } from "bun:test";
import { createModelNames, resolveModel } from "../../../src/proxy/rewrite/model-names.ts";
import { rewriteRules, rulesOf } from "../../support/rewrite-rules.ts";
import type { DiscoveredModel } from "../../../src/domain/models.ts";
import { createCurrentRewriting, type Rewritten } from "../../../src/proxy/rewrite/rewrite.ts";
import { backendOf, fileCatalog, modelOf, replaceableCatalog } from "../../support/catalog.ts";

function expectRows(rules: ReturnType<typeof rewriteRules>, rows: readonly [submitted: string, sent: string][]): void {
  const { names } = rulesOf(rules);
  expect(rows.map(([submitted]) => [submitted, resolveModel(submitted, names).sent])).toEqual([...rows]);
}

test("a name of a million marks takes linear time", () => {
  const marks = "[1m]".repeat(250_000);
  const { names } = rulesOf(rewriteRules({ servedModel: "Qwen" }));
  expect(resolveModel(`qwen${marks}`, names).name).toBe("Qwen");
  expect(resolveModel(`${marks}x`, names).name).toBe(`${marks}x`);
});

test("a live model that ends in the mark keeps it", () => {
  expectRows(rewriteRules({ servedModel: "Deep-V4[1M]" }), [
    ["deep-v4[1m]", "Deep-V4[1M]"],
    ["deep-v4", "Deep-V4[1M]"],
  ]);
});

const backends = [backendOf("gpu-a"), backendOf("gpu-b"), backendOf("attic", { discover: true })];
const coder = modelOf("qwen3-coder", ["gpu-a", "gpu-b"], {
  servedAs: "Qwen/Qwen3-Coder-480B",
  aliases: ["claude-*", "claude-haiku-*", "GPT-4", "org/*"],
  reasoning: true,
});
const small = modelOf("Small", ["attic"], { aliases: ["claude-haiku*", "tiny", "gpt-4o-mini"] });
const embedder = modelOf("bge-m3", ["attic"]);
const models = [small, coder, embedder];
const discovered: DiscoveredModel = { name: "Found/Model", backends: ["attic", "gpu-b"] };
const found = { find: (name: string) => (name === "found/model" ? discovered : undefined), list: () => [discovered] };

type Meant = readonly [name: string, sent: string, candidates: string, mode: "thinks" | "non-think"];

const meaningOf = (submitted: string, fields: Parameters<typeof fileCatalog>[2] = {}): Meant => {
  const names = createModelNames(fileCatalog(backends, models, fields), found);
  const { name, sent, candidates, nonThinking } = resolveModel(submitted, names);
  return [name, sent, candidates.join(), nonThinking ? "non-think" : "thinks"];
};

const coderMeant: Meant = ["qwen3-coder", "Qwen/Qwen3-Coder-480B", "gpu-a,gpu-b", "thinks"];
const coderNotThinking: Meant = ["qwen3-coder", "Qwen/Qwen3-Coder-480B", "gpu-a,gpu-b", "non-think"];
const smallMeant: Meant = ["Small", "Small", "attic", "thinks"];

describe("with a file, a name means", () => {
  test.each<[submitted: string, meant: Meant]>([
    ["qwen3-coder", coderMeant],
    ["QWEN3-Coder[1m]", coderMeant],
    ["qwen3-coder-nonthinking", coderNotThinking],
    ["Qwen3-Coder-NonThinking[1M]", coderNotThinking],
    ["claude-opus-4", coderMeant],
    ["claude-opus-4-nonthinking", coderNotThinking],
    ["gpt-4", coderMeant],
    ["gpt-4-nonthinking", coderNotThinking],
    ["org/anything", coderMeant],
    // The longest prefix wins, with or without a hyphen.
    ["claude-haiku-4", coderMeant],
    ["claude-haiku4", smallMeant],
    ["gpt-4o-mini", smallMeant],
    ["TINY", smallMeant],
    ["small", smallMeant],
    ["bge-m3", ["bge-m3", "bge-m3", "attic", "thinks"]],
    ["found/MODEL", ["Found/Model", "Found/Model", "attic,gpu-b", "thinks"]],
  ])("%s", (submitted, meant) => {
    expect(meaningOf(submitted)).toEqual(meant);
  });

  // `servedAs` is no name; a model that does not reason has no such mode; the suffix is spelled out.
  test.each(["gpt-5", "small-nonthinking", "tiny-nonthinking", "qwen3-coder-nonthink", "Qwen/Qwen3-Coder-480B", ""])(
    "nothing: %p",
    (submitted) => {
      expect(meaningOf(submitted)).toEqual([submitted, submitted, "", "thinks"]);
    },
  );

  test("the default model, if nobody has it", () => {
    expect(meaningOf("gpt-5", { defaultModel: "Small" })).toEqual(smallMeant);
    expect(meaningOf("small-nonthinking", { defaultModel: "qwen3-coder" })).toEqual(coderMeant);
    expect(meaningOf("found/model", { defaultModel: "Small" })[0]).toBe("Found/Model");
  });

  test("the name itself at the first backend, if unknown names pass", () => {
    expect(meaningOf("Gpt-5[1m]", { unknownNames: "pass" })).toEqual(["Gpt-5[1m]", "Gpt-5[1m]", "gpu-a", "thinks"]);
  });
});

test("what names no model goes to the first backend of the default model, or of the file", () => {
  const unnamed = (defaultModel: string | undefined) =>
    createModelNames(fileCatalog(backends, models, { defaultModel })).unnamed.candidates;
  expect(unnamed("bge-m3")).toEqual(["attic"]);
  expect(unnamed("qwen3-coder")).toEqual(["gpu-a"]);
  expect(unnamed(undefined)).toEqual(["gpu-a"]);
});

describe("what holds is the rules of the model that a body names", () => {
  const strict = modelOf("strict", ["gpu-a"], {
    servedAs: "s",
    reasoning: true,
    hanGuard: true,
    forceStreamUsage: "continuous",
    maxOutputTokens: 100,
  });
  const lenient = modelOf("lenient", ["gpu-b"], { contextTokens: 1000, maxOutputTokens: 400 });
  const current = replaceableCatalog(fileCatalog(backends, [strict, lenient]));
  const rewriting = createCurrentRewriting(current);

  async function sent(
    model: string,
    key: "plain" | "limited" = "plain",
    way: "asking" | "unasked" = "asking",
  ): Promise<Record<string, unknown>> {
    const body = `{"model":"${model}","max_tokens":5000,"stream":true,"messages":[{"role":"user","content":"hi"}]}`;
    const rewritten = await rewriting.latest[key][way]("/v1/chat/completions", Buffer.from(body));
    const { pieces, target } = rewritten as Rewritten;
    const text = pieces === undefined ? body : Buffer.concat(pieces).toString();
    const json = JSON.parse(text) as Record<string, unknown> & { messages: unknown[] };
    return { ...json, messages: json.messages.length, candidates: target.candidates.join() };
  }

  test("of two models in turn", async () => {
    const kwargs = { thinking: true, reasoning_effort: "high" };
    const always = { stream: true, messages: 2, model: "s", max_tokens: 100, candidates: "gpu-a" };
    const usage = { include_usage: true, continuous_usage_stats: true };
    const ofStrict = { ...always, stream_options: usage, chat_template_kwargs: kwargs };
    const ofLenient = { stream: true, messages: 1, model: "lenient", max_tokens: 400, candidates: "gpu-b" };
    expect(await sent("strict")).toEqual(ofStrict);
    expect(await sent("lenient")).toEqual(ofLenient);
    expect(await sent("strict-nonthinking")).toEqual({ ...ofStrict, chat_template_kwargs: { thinking: false } });
    expect(await sent("lenient", "limited")).toEqual({ ...ofLenient, stream_options: { include_usage: true } });
    expect(await sent("strict", "limited")).toEqual(ofStrict);
    expect(await sent("strict", "limited", "unasked")).toEqual({ ...always, chat_template_kwargs: kwargs });
  });

  test("of the last of several, and every one becomes its name", async () => {
    const body = '{"model":"lenient","model":5,"model":"gpt-5","max_tokens":5000,"model":"Strict"}';
    const { pieces = [], target } = (await rewriting.latest.plain.asking("/v1/x", Buffer.from(body))) as Rewritten;
    expect(Buffer.concat(pieces).toString()).toBe('{"model":"s","model":"s","model":"s","max_tokens":100,"model":"s"}');
    expect(target.candidates).toEqual(["gpu-a"]);
  });

  test("of a replaced catalog from the next request on", async () => {
    const before = rewriting.latest;
    current.replace(fileCatalog(backends, [{ ...lenient, backends: ["attic"] }]));
    expect((await sent("lenient"))["candidates"]).toBe("attic");
    expect(resolveModel("strict", before.names).candidates).toEqual(["gpu-a"]);
    expect(resolveModel("strict", rewriting.latest.names).candidates).toEqual([]);
  });
});
