import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { clientRules, modelNamePattern } from "../domain/models.ts";
import { variables } from "./config.ts";
import { upstreamPattern } from "./setting-kinds.ts";

/** What editors show of a member, and what they and a fault of the file say is allowed. */
const says = (description: string, allowed: string): { description: string; errorMessage: string } => ({
  description,
  errorMessage: `use ${allowed}`,
});

const maxTokens = 1_000_000_000;

const count = (description: string, maximum = maxTokens) =>
  Type.Optional(Type.Integer({ minimum: 1, maximum, ...says(description, `a whole number from 1 to ${maximum}`) }));

const word = (pattern: string, description: string, allowed: string, options = {}) =>
  Type.Optional(Type.String({ pattern, ...options, ...says(description, allowed) }));

const oneOf = <const T extends string>(values: readonly T[], description: string, allowed: string, options = {}) =>
  Type.Optional(
    Type.Unsafe<T>(
      Type.Union(
        values.map((value) => Type.Literal(value)),
        { ...options, ...says(description, allowed) },
      ),
    ),
  );

const flag = (description: string, byDefault?: boolean) =>
  Type.Optional(
    Type.Boolean({ ...says(description, "true or false"), ...(byDefault === undefined ? {} : { default: byDefault }) }),
  );

export const upstreamUrl = variables.PROXY_UPSTREAM_URL;
const strict = { additionalProperties: false };

/** Names are shown in headers, metrics and addresses. */
const backendName = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$";
export const aliasPattern = `${modelNamePattern.slice(0, -1)}\\*?$`;

const names = (pattern: string, allowed: string) => ({
  propertyNames: { pattern, errorMessage: `use ${allowed}` },
});

const backend = Type.Object(
  {
    url: Type.String({
      pattern: upstreamPattern,
      ...says("Where the backend is: an address with any path prefix, or a UNIX socket.", upstreamUrl.allowed),
    }),
    api_key_env: word(
      "^[A-Za-z_][A-Za-z0-9_]{0,127}$",
      "The environment variable with the key that the backend gets as a bearer token.",
      "the name of an environment variable",
    ),
    max_concurrency: count("How many requests it gets at once. Default: PROXY_MAX_CONCURRENCY.", 1_000_000),
    max_prefill_tokens: count(
      "It reads one prompt at a time of which more is not in its cache. Default: PROXY_MAX_PREFILL_TOKENS.",
    ),
    spill: flag("Use it only while the other backends of a model are full or out.", false),
    retry_503: flag("Its 503 comes from the engine, so a request may then go to another backend.", false),
    discover: flag("Add the models that it lists itself.", false),
    cached_in_input: flag(
      "On /v1/messages, its input includes what came from a cache, as other gateways' does.",
      false,
    ),
    priority: oneOf(
      ["low_first", "high_first"],
      "Tell the engine whose requests come first: the lowest number, or the highest.",
      "low_first or high_first",
    ),
    engine_members: oneOf(
      ["pass", "drop"],
      "What becomes of members with which clients speak to the engine as its operator.",
      "pass or drop",
      { default: "pass" },
    ),
    health: word("^/[\\x21-\\x7e]{0,255}$", "The path that tells whether it is up.", "a path that begins with /", {
      default: "/health",
    }),
  },
  { ...strict, ...says("A language-model server.", "members such as url") },
);

const model = Type.Object(
  {
    backends: Type.Array(Type.String({ errorMessage: "use names of backends" }), {
      minItems: 1,
      maxItems: 1000,
      ...says("The backends that serve it.", "a list of names of backends"),
    }),
    served_as: word("^[^\\x00-\\x1f\\x7f]{1,400}$", "What the backends call it. Default: its name.", "a model name"),
    aliases: Type.Optional(
      Type.Array(
        Type.String({ pattern: aliasPattern, errorMessage: "use a name, or the beginning of names with * at its end" }),
        {
          maxItems: 1000,
          ...says(
            "Other names for it, in any case; one that ends in * stands for all names that begin so.",
            "a list of names, or beginnings of names with * at their end",
          ),
        },
      ),
    ),
    kind: Type.Optional(
      Type.Literal("embedding", says("Lists say that it embeds. Default: what its backends say.", "embedding")),
    ),
    reasoning: flag("It has a mode that thinks and one that does not, which NAME-nonthinking asks for.", false),
    han_guard: flag("Discourage stray Chinese characters by the system prompt. Default: PROXY_HAN_GUARD."),
    force_stream_usage: oneOf(
      ["off", "final", "continuous"],
      "Ask for the usage of streams. Default: PROXY_FORCE_STREAM_USAGE.",
      "one of off, final, continuous",
    ),
    client_rules: Type.Optional(
      Type.Union([Type.Literal("auto"), Type.Array(Type.Union(clientRules.map((name) => Type.Literal(name))))], {
        ...says(
          "Mend what certain clients send. Default: CLIENT_RULES.",
          `auto, or a list of ${clientRules.join(", ")}`,
        ),
      }),
    ),
    private_cache: oneOf(
      ["off", "team", "key"],
      "Share what the engine has cached within a team, or a key, alone.",
      "one of off, team, key",
    ),
    context_tokens: count("The longest context. Default: MAX_CONTEXT_TOKENS."),
    max_output_tokens: count("The highest max_tokens that is forwarded. Default: MAX_OUTPUT_TOKENS."),
  },
  { ...strict, ...says("A model, under its name everywhere but at the backends.", "members such as backends") },
);

const namedBy = <S extends TSchema>(pattern: string, schema: S) =>
  Type.Record(Type.String({ pattern }), schema, strict);

/** The file that `MODELS_FILE` names. */
export const modelsFileSchema = Type.Object(
  {
    backends: {
      ...namedBy(backendName, backend),
      minProperties: 1,
      ...names(backendName, "a name of up to 64 letters, digits, dots, hyphens and underscores"),
      ...says("The backends by name.", "at least one backend: a name, and members such as url"),
    },
    models: Type.Optional({
      ...namedBy(modelNamePattern, model),
      ...names(modelNamePattern, "a model name of up to 200 characters without blanks and *"),
      ...says("The models by name, in the order of /v1/models.", "names of models with members such as backends"),
    }),
    default_model: Type.Optional(
      Type.String(
        says("The model that every unknown name becomes; left out: 404.", "the name of a model of this file"),
      ),
    ),
    list_aliases: flag("List the aliases in /v1/models too, but for those with *.", false),
  },
  {
    ...strict,
    $schema: "http://json-schema.org/draft-07/schema#",
    title: "Backends and models of Tollgate",
    ...says("What MODELS_FILE names.", "members such as backends and models"),
  },
);

export type ModelsFile = Static<typeof modelsFileSchema>;
