import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { variableNames } from "../../src/config/config.ts";
import { maxModelsFileBytes, type ParsedModelsFile, parseModelsFile } from "../../src/config/models-file.ts";
import { withTwoBackends } from "./models-files.ts";
import { threadMs } from "../support/processor-time.ts";

const environment = {
  GPU_B_KEY: "sk-of-gpu-b",
  BLANK_KEY: "two words",
  EMPTY_KEY: "",
  SECRET_KEY: "0123456789abcdef",
  TOLLGATE_KEY: "gpu-key",
  PGPASSWORD: "password",
};

const rules = {
  reasoning: false,
  hanGuard: true,
  forceStreamUsage: "final",
  clientRules: ["drop_billing_line"],
  contextTokens: 200_000,
  maxOutputTokens: 16_000,
} as const;

const parse = (text: string | Uint8Array): ParsedModelsFile =>
  parseModelsFile(typeof text === "string" ? new TextEncoder().encode(text) : text, {
    path: "models.yaml",
    environment,
    defaults: { rules, maxConcurrency: 7 },
  });

function faultsOf(text: string | Uint8Array): readonly string[] {
  const parsed = parse(text);
  return "faults" in parsed ? parsed.faults : [];
}

function catalogOf(text: string) {
  const parsed = parse(text);
  if ("faults" in parsed) throw new Error(parsed.faults.join("\n"));
  return parsed.catalog;
}

describe("a file of models", () => {
  test("becomes a catalog, with the settings where it says nothing", () => {
    expect(catalogOf(withTwoBackends)).toEqual({
      backends: [
        {
          name: "gpu-b",
          url: "http://10.0.0.12:8000/prefix",
          baseUrl: "http://10.0.0.12:8000/prefix",
          socket: undefined,
          apiKey: "sk-of-gpu-b",
          maxConcurrency: 64,
          spill: true,
          retry503: true,
          discover: true,
          health: "/ready",
        },
        {
          name: "7",
          url: "unix:/run/backend.sock",
          baseUrl: "http://localhost",
          socket: "/run/backend.sock",
          apiKey: undefined,
          maxConcurrency: 7,
          spill: false,
          retry503: false,
          discover: false,
          health: "/health",
        },
      ],
      models: [
        {
          name: "Coder/Large",
          servedAs: "vendor/coder large",
          aliases: ["claude-*", "gpt-5"],
          backends: ["7", "gpu-b"],
          reasoning: true,
          hanGuard: false,
          forceStreamUsage: "off",
          clientRules: "auto",
          contextTokens: 262_144,
          maxOutputTokens: 32_768,
        },
        { name: "12", servedAs: "12", aliases: [], backends: ["gpu-b"], ...rules },
      ],
      defaultModel: "Coder/Large",
      unknownNames: "refuse",
      nonThinkingNames: "own",
      listAliases: true,
      otherModels: rules,
      file: { path: "models.yaml", hash: expect.stringMatching(/^[0-9a-f]{64}$/) },
    });
  });

  test("needs only a backend", () => {
    const { backends, models, defaultModel } = catalogOf("backends: { a: { url: 'http://a' } }");
    expect([backends.map(({ name }) => name), models, defaultModel]).toEqual([["a"], [], undefined]);
  });

  test("has the hash of its bytes", () => {
    const [one, other] = ["", "\n"].map((end) => catalogOf(`backends: { a: { url: 'http://a' } }${end}`).file?.hash);
    expect(one).not.toBe(other);
    expect(one).toBe(catalogOf("backends: { a: { url: 'http://a' } }").file?.hash);
  });
});

const backend = "backends: { a: { url: http://a } }\n";
const aNames = "a name of up to 64 letters, digits, dots, hyphens and underscores";
const modelMembers =
  "backends, served_as, aliases, kind, reasoning, han_guard, force_stream_usage, client_rules, private_cache, context_tokens, max_output_tokens";
const backendMembers =
  "url, api_key_env, max_concurrency, max_prefill_tokens, spill, retry_503, discover, cached_in_input, priority, engine_members, health";
const anUrl = "an http:// or https:// address without user, query or fragment, or unix:/ and the path of a socket";
const notAllowed = "its value is not allowed; use";
const someBackend = "at least one backend: a name, and members such as url";
const backendNames = "a list of names of backends";
const aliasNames = "a name, or the beginning of names with * at its end";
const notSent = "a setting of Tollgate is never sent to a backend; use a variable of another name";
const notSet = "this environment variable is not set; set it to the key, or leave the member out";

describe("a fault of a file of models is a line", () => {
  test.each<[string, string[]]>([
    // Not YAML, or more of it than is read.
    ["", ["1: is empty; use members such as backends and models"]],
    ["backends: [", ["1: the indentation is wrong, or a bracket is missing; indent the members of one mapping alike"]],
    ["backends: { a: { url: 'http://a } }", ["1: a quote, bracket, colon or comma is missing"]],
    ["backends:\n\ta: 1", ["2: a tab is not allowed here; indent with blanks"]],
    [`${backend}---\n${backend}`, ["2: a second document begins here; use one"]],
    [`${backend}? [x]\n: 1`, ["2: a name has to be text"]],
    [`${backend}x: @y`, ["2: a value that begins with this character has to be in quotes"]],
    [`${backend}x: "\\y"`, ["2: this escape is not allowed in double quotes; use single quotes"]],
    [`${backend}x: y: z`, ["2: two mappings are in one line; begin a new line, or use quotes"]],
    [`${backend}x: *y`, ["2: x: aliases (*) are not allowed; write the value again"]],
    [`${backend}x: &y 1`, ["2: x: anchors (&) are not allowed"]],
    [`${backend}&y x: 1`, ["2: x: anchors (&) and tags (!) are not allowed"]],
    [`${backend}*y : 1`, ["2: a name has to be text"]],
    [`${backend}x: !!str 1`, ["2: x: tags (!) are not allowed; use quotes for text"]],
    [`${backend}x: !mine 1`, ["2: tags (!) are not allowed; use quotes for text"]],
    [
      "backends:\n  a: { url: http://a }\n  a: { url: http://b }",
      ["3: backends.a: stands here twice, first on line 2"],
    ],
    ["backends: { a: { url: http://a, url: http://a } }", ["1: backends.a.url: stands here twice, first on line 1"]],
    // Members.
    ["models: {}", [`1: backends: is missing; use ${someBackend}`]],
    ["backends: {}", [`1: backends: ${notAllowed} ${someBackend}`]],
    ["backends:", [`1: backends: is empty; use ${someBackend}`]],
    ["backends: 3", [`1: backends: ${notAllowed} ${someBackend}`]],
    ["[1]", [`1: ${notAllowed} members such as backends and models`]],
    [`${backend}routes: {}`, ["2: routes is unknown; use backends, models, default_model, list_aliases"]],
    ["backends: { _a: { url: http://a } }", [`1: backends: a name is not allowed; use ${aNames}`]],
    ["backends: { a: }", ["1: backends.a: is empty; use members such as url"]],
    ["backends: { a: {} }", [`1: backends.a.url: is missing; use ${anUrl}`]],
    ["backends: { a: { url: } }", [`1: backends.a.url: is empty; use ${anUrl}`]],
    ["backends: { a: { url: ftp://a } }", [`1: backends.a.url: ${notAllowed} ${anUrl}`]],
    ["backends: { a: { url: http://u:p@a } }", [`1: backends.a.url: ${notAllowed} ${anUrl}`]],
    ["backends: { a: { url: http://a/?k=v } }", [`1: backends.a.url: ${notAllowed} ${anUrl}`]],
    ["backends: { a: { url: 'unix:run' } }", [`1: backends.a.url: ${notAllowed} ${anUrl}`]],
    ["backends: { a: { url: http://a, wieght: 3 } }", [`1: backends.a: wieght is unknown; use ${backendMembers}`]],
    [
      "backends:\n  a:\n    url: http://a\n    health: up",
      [`4: backends.a.health: ${notAllowed} a path that begins with /`],
    ],
    ...[0, 1_000_001, 1.5, '"8"', "many"].map((value): [string, string[]] => [
      `backends: { a: { url: http://a, max_concurrency: ${value} } }`,
      [`1: backends.a.max_concurrency: ${notAllowed} a whole number from 1 to 1000000`],
    ]),
    ...["spill", "retry_503", "discover", "cached_in_input"].map((member): [string, string[]] => [
      `backends: { a: { url: http://a, ${member}: yes } }`,
      [`1: backends.a.${member}: ${notAllowed} true or false`],
    ]),
    [`${backend}models: { m: }`, ["2: models.m: is empty; use members such as backends"]],
    [
      `${backend}models: { "m m": { backends: [a] } }`,
      ["2: models: a name is not allowed; use a model name of up to 200 characters without blanks and *"],
    ],
    [`${backend}models: { m: { backends: [a], served: x } }`, [`2: models.m: served is unknown; use ${modelMembers}`]],
    [`${backend}models: { m: {} }`, [`2: models.m.backends: is missing; use ${backendNames}`]],
    [`${backend}models: { m: { backends: a } }`, [`2: models.m.backends: ${notAllowed} ${backendNames}`]],
    [`${backend}models: { m: { backends: [] } }`, [`2: models.m.backends: ${notAllowed} ${backendNames}`]],
    [
      `${backend}models:\n  "v/m":\n    backends:\n      - a\n      - 3`,
      ['6: models."v/m".backends: its value is not allowed; use names of backends; without quotes this is a number'],
    ],
    [
      `${backend}models: { m: { backends: [a], served_as: 3 } }`,
      [`2: models.m.served_as: ${notAllowed} a model name; without quotes this is a number`],
    ],
    [
      `${backend}models: { m: { backends: [a], aliases: ["*", "a*b"] } }`,
      [`2: models.m.aliases: ${notAllowed} ${aliasNames}`, `2: models.m.aliases: ${notAllowed} ${aliasNames}`],
    ],
    [
      `${backend}models: { m: { backends: [a], force_stream_usage: on } }`,
      [`2: models.m.force_stream_usage: ${notAllowed} one of off, final, continuous`],
    ],
    [
      `${backend}models: { m: { backends: [a], client_rules: [drop_it] } }`,
      [
        `2: models.m.client_rules: ${notAllowed} auto, or a list of system_turns_to_user, drop_billing_line, developer_to_system, function_tools_only, full_context_code`,
      ],
    ],
    ...["context_tokens", "max_output_tokens"].map((member): [string, string[]] => [
      `${backend}models: { m: { backends: [a], ${member}: 0 } }`,
      [`2: models.m.${member}: ${notAllowed} a whole number from 1 to 1000000000`],
    ]),
    ...["reasoning", "han_guard"].map((member): [string, string[]] => [
      `${backend}models: { m: { backends: [a], ${member}: 1 } }`,
      [`2: models.m.${member}: ${notAllowed} true or false`],
    ]),
    [`${backend}list_aliases: 1`, [`2: list_aliases: ${notAllowed} true or false`]],
    [
      `${backend}default_model: 1`,
      [`2: default_model: ${notAllowed} the name of a model of this file; without quotes this is a number`],
    ],
    // Keys.
    [
      "backends: { a: { url: http://a, api_key_env: sk-1 } }",
      [`1: backends.a.api_key_env: ${notAllowed} the name of an environment variable`],
    ],
    ["backends: { a: { url: http://a, api_key_env: hf_AbC1 } }", [`1: backends.a.api_key_env: ${notSet}`]],
    ["backends: { a: { url: http://a, api_key_env: EMPTY_KEY } }", [`1: backends.a.api_key_env: ${notSet}`]],
    [
      "backends: { a: { url: http://a, api_key_env: BLANK_KEY } }",
      ["1: backends.a.api_key_env: the value of this environment variable is no key; use visible ASCII characters"],
    ],
    ...[...variableNames, "TOLLGATE_KEY", "PGPASSWORD"].map((name): [string, string[]] => [
      `backends: { a: { url: http://a, api_key_env: ${name} } }`,
      [`1: backends.a.api_key_env: ${notSent}`],
    ]),
    // Names.
    [
      `${backend}models:\n  m: { backends: [a, b, a] }`,
      [
        '3: models.m.backends: "b" is no backend of this file; use one of a',
        '3: models.m.backends: "a" stands here twice',
      ],
    ],
    [
      `${backend}models:\n  m: { backends: [a] }\n  M: { backends: [a] }`,
      ['4: models.M: "M" stands for a model twice, in any case of letters; see line 3'],
    ],
    [
      `${backend}models:\n  m: { backends: [a], aliases: [x, M] }\n  n: { backends: [a], aliases: [X, c-*, C-*] }`,
      [
        '3: models.m.aliases: "M" stands for a model twice, in any case of letters; see line 3',
        '4: models.n.aliases: "X" stands for a model twice, in any case of letters; see line 3',
        '4: models.n.aliases: "C-*" stands for a model twice, in any case of letters; see line 4',
      ],
    ],
    [
      `${backend}models:\n  m-NonThinking: { backends: [a], aliases: [x-nonthinking, "y[1m]"] }`,
      [
        '3: models.m-NonThinking: "m-NonThinking" ends in -nonthinking, which is not part of a name',
        '3: models.m-NonThinking.aliases: "x-nonthinking" ends in -nonthinking, which is not part of a name',
        '3: models.m-NonThinking.aliases: "y[1m]" ends in [1m], which is not part of a name',
      ],
    ],
    [
      `${backend}models: { m: { backends: [a], aliases: [x] } }\ndefault_model: x`,
      ["3: default_model: is no model of this file; use the name of one"],
    ],
  ])("%#: %j", (text, expected) => {
    expect(faultsOf(text)).toEqual(expected.map((line) => `models.yaml:${line}`));
  });

  test("each has one, in the order of the file", () => {
    const text = "models:\n  m:\n    aliases: x\nbackends:\n  a: { url: 3 }\n  b: {}\n";
    expect(faultsOf(text).map((line) => line.split(": ").slice(0, 2))).toEqual([
      ["models.yaml:2", "models.m.backends"],
      ["models.yaml:3", "models.m.aliases"],
      ["models.yaml:5", "backends.a.url"],
      ["models.yaml:6", "backends.b.url"],
    ]);
  });

  test("has no key that stands in the wrong place", () => {
    const key = "sk-1234567890abcdef";
    const places = [
      `url: http://a, api_key: ${key}`,
      `url: http://a, api_key:${key}`,
      `url: http://a, ${key}: 1`,
      `url: http://a, api_key_env: ${key}`,
      `url: http://a, api_key_env: hf_1234567890abcdef`,
      `url: http://u:${key}@a`,
      `url: http://a?key=${key}`,
      `url: http://a, api_key: "${key}`,
      `url: http://a, api_key: @${key}`,
      `url: http://a, api_key: !${key} x`,
      `url: http://a, api_key: *${key}`,
      `url: http://a, api_key: &${key} x`,
    ];
    for (const place of places) {
      const faults = faultsOf(`backends: { a: { ${place} } }`);
      expect(faults.length).toBeGreaterThan(0);
      expect(faults.join("\n")).not.toContain("1234567890abcdef");
    }
  });
});

describe("a hostile file of models", () => {
  const inside = (open: string, close: string, count = 100_000): string => `x: ${open}${"1,".repeat(count)}${close}`;
  const laughs = Array.from({ length: 20 }, (_, at) => `x${at}: &x${at} [${`*x${at - 1},`.repeat(9)}]`).join("\n");
  test.each<[string, string | Uint8Array, string]>([
    ["of 10 MB", "x".repeat(10_000_000), `models.yaml: has more than ${maxModelsFileBytes} bytes`],
    ["not in UTF-8", new Uint8Array([0x61, 0xff]), "models.yaml: is not text in UTF-8"],
    ["nested in brackets", "[".repeat(maxModelsFileBytes), "models.yaml:1: it is nested too deeply"],
    ["nested in mappings", "{a: ".repeat(maxModelsFileBytes / 4), "models.yaml:1: it is nested too deeply"],
    ["nested in lists", "- ".repeat(maxModelsFileBytes / 2), "models.yaml:1: it is nested too deeply"],
    ["nested in explicit names", "\n\n" + "? - ".repeat(60_000), "models.yaml:3: it is nested too deeply"],
    [
      "with much inside of brackets",
      inside("[".repeat(3000), "]".repeat(3000)),
      "models.yaml:1: it is nested too deeply",
    ],
    [
      "with much inside of lists",
      `${"- ".repeat(20)}[${"1,".repeat(100_000)}]`,
      `models.yaml:1: it is nested too deeply`,
    ],
    [
      "with much inside of a long name",
      inside(`{ ${"k".repeat(100_000)}: [`, "] }", 70_000),
      "models.yaml:1: backends: is missing; use at least one backend: a name, and members such as url",
    ],
    ["of aliases of aliases", laughs, "models.yaml:1: x0: anchors (&) are not allowed"],
  ])("%s has a fault, soon", (_name, text, expected) => {
    let faults: readonly string[] = [];
    expect(threadMs(() => (faults = faultsOf(text)))).toBeLessThan(5000);
    expect(faults[0]).toBe(expected);
    expect(faults.length).toBeLessThanOrEqual(21);
  });

  test("may have many brackets in a comment", () => {
    expect(faultsOf(`${backend}# ${"[".repeat(90)}\n# ${"- ".repeat(60)}\n`)).toEqual(faultsOf(backend));
  });

  test("with many wrong members has some of their faults", () => {
    const text = `${backend}${Array.from({ length: 9000 }, (_, at) => `m${at}: 1`).join("\n")}`;
    expect(faultsOf(text)).toHaveLength(21);
    expect(faultsOf(text).at(-1)).toBe("models.yaml: has more faults than these");
  });

  test("never throws", () => {
    const piece = fc.oneof(
      fc.constantFrom(
        "backends",
        "models",
        ": ",
        "\n",
        "  ",
        "- ",
        "{",
        "}",
        "[",
        "]",
        "&a ",
        "*a",
        "!t ",
        '"',
        "'",
        ",",
      ),
      fc.constantFrom(
        "url: http://a",
        "__proto__",
        "constructor",
        "? ",
        "| ",
        "> ",
        "# ",
        "%YAML 1.1\n",
        "---\n",
        "~",
        "<<",
      ),
      fc.string({ maxLength: 5 }),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        for (const fault of faultsOf(pieces.join(""))) expect(fault).toStartWith("models.yaml:");
      }),
      { numRuns: 2000 },
    );
  });
});

describe("any valid file of models", () => {
  const name = fc.stringMatching(/^[a-z][a-z0-9.-]{0,12}$/).filter((text) => !text.endsWith("-nonthinking"));
  const optional = <T>(values: fc.Arbitrary<T>) => fc.option(values, { nil: undefined });
  const backendOf = fc.record({
    url: fc.constantFrom("http://a:1", "https://b/prefix/v1/", "unix:/run/x.sock"),
    api_key_env: optional(fc.constant("GPU_B_KEY")),
    max_concurrency: optional(fc.integer({ min: 1, max: 1_000_000 })),
    max_prefill_tokens: optional(fc.integer({ min: 1, max: 1_000_000 })),
    spill: optional(fc.boolean()),
    discover: optional(fc.boolean()),
    health: optional(fc.constantFrom("/", "/up?x")),
  });

  test("is read", () => {
    const document = fc
      .uniqueArray(fc.tuple(name, backendOf), { minLength: 1, maxLength: 5, selector: ([key]) => key })
      .chain((backends) =>
        fc.record({
          backends: fc.constant(Object.fromEntries(backends)),
          names: fc.uniqueArray(name, { maxLength: 12 }),
          of: fc.subarray(
            backends.map(([key]) => key),
            { minLength: 1 },
          ),
          tokens: fc.integer({ min: 1, max: 1_000_000_000 }),
          flow: fc.boolean(),
        }),
      );
    fc.assert(
      fc.property(document, ({ backends, names, of, tokens, flow }) => {
        const [first, ...others] = names;
        const models = Object.fromEntries(
          others.slice(0, 4).map((key) => [key, { backends: [...of], context_tokens: tokens, reasoning: flow }]),
        );
        if (first !== undefined)
          models[first] = { backends: [...of], aliases: others.slice(4), served_as: "x y" } as never;
        const whole = { models, backends, ...(first === undefined ? {} : { default_model: first.toUpperCase() }) };
        const text = flow ? JSON.stringify(whole) : Bun.YAML.stringify(whole, null, 2);
        const catalog = catalogOf(text);
        expect(catalog.backends.map((found) => found.name)).toEqual(Object.keys(backends));
        expect(catalog.models.map((found) => found.name).toSorted()).toEqual(Object.keys(models).toSorted());
        expect(catalog.defaultModel).toBe(first);
      }),
      { numRuns: 200 },
    );
  });
});
