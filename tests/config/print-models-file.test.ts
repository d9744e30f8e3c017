import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { catalogFromEnvironment } from "../../src/config/catalog.ts";
import { type Environment, readConfig } from "../../src/config/config.ts";
import { parseModelsFile } from "../../src/config/models-file.ts";
import { printedKeyVariable, printModelsFile } from "../../src/config/print-models-file.ts";
import type { Catalog } from "../../src/domain/models.ts";

const print = (environment: Environment): string => printModelsFile(readConfig(environment, false));

/** @throws Error with the faults */
function parse(text: string, environment: Environment): Catalog {
  const { PROXY_HAN_GUARD, PROXY_FORCE_STREAM_USAGE, MAX_CONTEXT_TOKENS, MAX_OUTPUT_TOKENS } = environment;
  const left = { PROXY_HAN_GUARD, PROXY_FORCE_STREAM_USAGE, MAX_CONTEXT_TOKENS, MAX_OUTPUT_TOKENS };
  const parsed = parseModelsFile(new TextEncoder().encode(text), {
    path: "models.yaml",
    environment: { [printedKeyVariable]: environment["PROXY_UPSTREAM_API_KEY"] },
    defaults: {
      rules: catalogFromEnvironment(readConfig(left, false)).otherModels,
      maxConcurrency: undefined,
    },
  });
  if ("faults" in parsed) throw new Error(parsed.faults.join("\n"));
  return parsed.catalog;
}

const header = `# Name this file in MODELS_FILE, and unset PROXY_UPSTREAM_URL, PROXY_UPSTREAM_API_KEY, PROXY_ALIAS_MODEL,
# PROXY_ALIAS_REWRITE_ALL, PROXY_FAMILY_MODEL and PROXY_VENDOR_PREFIXES.

`;
const discovers = `    # Names that neither this file nor the backend lists get 404; without a file they are forwarded as they are.
    discover: true
`;

describe("the file that the settings mean", () => {
  test("without a served model lets the backend say its models", () => {
    expect(print({})).toBe(`${header}backends:\n  backend:\n    url: http://127.0.0.1:8000\n${discovers}`);
  });

  test("has the model, its rules, and the variable of the key", () => {
    const environment = {
      PROXY_UPSTREAM_URL: "unix:/run/backend.sock",
      PROXY_UPSTREAM_API_KEY: "sk-secret",
      PROXY_ALIAS_MODEL: "Vendor/Coder",
      PROXY_FAMILY_MODEL: "vendor/coder",
      PROXY_ALIAS_REWRITE_ALL: "on",
      PROXY_VENDOR_PREFIXES: "claude",
      PROXY_HAN_GUARD: "off",
      PROXY_FORCE_STREAM_USAGE: "final",
      PROXY_MAX_CONCURRENCY: "4",
      MAX_CONTEXT_TOKENS: "1000",
      MAX_OUTPUT_TOKENS: "100",
    };
    expect(print(environment)).toBe(`${header}backends:
  backend:
    url: unix:/run/backend.sock
    # Set this variable to the value of PROXY_UPSTREAM_API_KEY.
    api_key_env: BACKEND_KEY
    max_concurrency: 4
models:
  # Only NAME-nonthinking, of this name or an alias, turns thinking off; without a file every such ending does.
  Vendor/Coder:
    backends:
      - backend
    aliases:
      - claude-*
    reasoning: true
    han_guard: false
    force_stream_usage: final
    context_tokens: 1000
    max_output_tokens: 100
default_model: Vendor/Coder
`);
  });

  test("says in a comment which names it cannot have", () => {
    const text = print({ PROXY_ALIAS_MODEL: "a b*[1m]-nonthinking", PROXY_VENDOR_PREFIXES: "x*,claude,Claude" });
    expect(text).toContain('# "a b*[1m]-nonthinking" cannot be a name in this file, so it is called otherwise.');
    expect(text).toContain('# The alias "x*-*" cannot stand in this file.');
    const [model] = parse(text, {}).models;
    expect(model).toMatchObject({ name: "a-b-", servedAs: "a b*[1m]-nonthinking", aliases: ["Claude-*"] });
  });

  test("parses back into what the settings mean", () => {
    const model = fc.stringMatching(/^[a-zA-Z0-9/._:#&-]{1,20}$/).filter((text) => !text.endsWith("-nonthinking"));
    const optional = <T>(values: fc.Arbitrary<T>) => fc.option(values, { nil: undefined });
    const tokens = optional(fc.integer({ min: 1, max: 1_000_000_000 }).map(String));
    const onOff = optional(fc.constantFrom("on", "off"));
    const environments = fc.record({
      PROXY_UPSTREAM_URL: optional(fc.constantFrom("http://a", "https://b:8443/x/v1/", "unix:/run/b.sock")),
      PROXY_UPSTREAM_API_KEY: optional(fc.constant("sk-secret")),
      PROXY_ALIAS_MODEL: optional(fc.oneof(model, fc.constantFrom("null", "1e3", "true", "~", "0x10", "- a", "a: b"))),
      PROXY_FAMILY_MODEL: optional(fc.constantFrom("x", "null", "NULL")),
      PROXY_ALIAS_REWRITE_ALL: onOff,
      PROXY_VENDOR_PREFIXES: optional(fc.uniqueArray(model, { selector: (text) => text.toLowerCase() }).map(String)),
      PROXY_HAN_GUARD: onOff,
      PROXY_FORCE_STREAM_USAGE: optional(fc.constantFrom("off", "final", "continuous")),
      PROXY_MAX_CONCURRENCY: optional(fc.integer({ min: 1, max: 1_000_000 }).map(String)),
      MAX_CONTEXT_TOKENS: tokens,
      MAX_OUTPUT_TOKENS: tokens,
    });
    fc.assert(
      fc.property(environments, (environment) => {
        const text = print(environment);
        expect(text).not.toContain("sk-secret");
        const meant = catalogFromEnvironment(readConfig(environment, false));
        const named = { name: expect.any(String), backends: ["backend"] };
        expect(parse(text, environment)).toEqual({
          ...meant,
          backends: meant.backends.map((backend) =>
            Object.assign(backend, { name: "backend", discover: meant.defaultModel === undefined }),
          ),
          // A name as clients spell it is not compared: it is the same in any case, or a comment says why not.
          models: meant.models.map((served) => Object.assign(served, named, { nonThinkingName: undefined })),
          defaultModel: meant.defaultModel && expect.any(String),
          unknownNames: "refuse",
          nonThinkingNames: "own",
          otherModels: { ...meant.otherModels, reasoning: false },
          file: expect.anything(),
        });
      }),
      { numRuns: 200 },
    );
  });
});
