import { Document, isMap, isScalar, type Pair } from "yaml";
import { catalogFromEnvironment } from "./catalog.ts";
import { type Config, variables } from "./config.ts";
import { aliasPattern } from "./models-schema.ts";
import { type Model, modelNamePattern, type ModelRules } from "../domain/models.ts";

/** The variable that the printed file names; it is to hold what PROXY_UPSTREAM_API_KEY holds. */
export const printedKeyVariable = "BACKEND_KEY";

/**
 * The file that says what the settings say without one. Settings that are defaults of the file stand in it where they are
 * not their own defaults. What no file can say is a comment.
 */
export function printModelsFile(config: Pick<Config, "upstream" | "rewrite" | "queue">): string {
  const catalog = catalogFromEnvironment(config);
  const [model] = catalog.models;
  const named = model && { name: printableName(model.name), model };
  const passesUnknown = catalog.defaultModel === undefined;
  const { name: url, apiKey } = config.upstream;
  const document = new Document({
    backends: {
      backend: {
        url,
        ...(apiKey !== undefined && { api_key_env: printedKeyVariable }),
        ...(config.queue.places !== undefined && { max_concurrency: config.queue.places }),
        ...(config.queue.maxPrefillTokens !== undefined && { max_prefill_tokens: config.queue.maxPrefillTokens }),
        ...(passesUnknown && { discover: true }),
      },
    },
    ...(named && { models: { [named.name]: membersOf(named.name, named.model) } }),
    ...(named && !passesUnknown && { default_model: named.name }),
  });
  document.commentBefore = comment(
    "Name this file in MODELS_FILE, and unset PROXY_UPSTREAM_URL, PROXY_UPSTREAM_API_KEY, PROXY_ALIAS_MODEL,",
    "PROXY_ALIAS_REWRITE_ALL, PROXY_FAMILY_MODEL and PROXY_VENDOR_PREFIXES.",
  );
  const say = (path: readonly string[], lines: readonly string[]): void => {
    const key = lines.length > 0 && findKey(document, path);
    if (key) key.commentBefore = comment(...lines);
  };
  say(["backends", "backend", "api_key_env"], ["Set this variable to the value of PROXY_UPSTREAM_API_KEY."]);
  say(
    ["backends", "backend", "discover"],
    ["Names that neither this file nor the backend lists get 404; without a file they are forwarded as they are."],
  );
  if (named !== undefined) say(["models", named.name], commentsOf(named.name, named.model));
  return document.toString({ lineWidth: 0 });
}

function membersOf(name: string, model: Model): object {
  return {
    backends: ["backend"],
    ...(model.servedAs !== name && { served_as: model.servedAs }),
    aliases: printableAliases(model).filter((alias) => isAllowed(alias, aliasPattern)),
    ...(model.reasoning && { reasoning: true }),
    ...rulesOf(model),
  };
}

/** Those that are not the defaults of the settings. */
function rulesOf({ hanGuard, forceStreamUsage, clientRules, contextTokens, maxOutputTokens }: ModelRules): object {
  const { PROXY_FORCE_STREAM_USAGE, MAX_CONTEXT_TOKENS, MAX_OUTPUT_TOKENS } = variables;
  return {
    ...(!hanGuard && { han_guard: false }),
    ...(forceStreamUsage !== PROXY_FORCE_STREAM_USAGE.schema.default && { force_stream_usage: forceStreamUsage }),
    ...(clientRules.length > 0 && { client_rules: clientRules }),
    ...(contextTokens !== MAX_CONTEXT_TOKENS.schema.default && { context_tokens: contextTokens }),
    ...(maxOutputTokens !== MAX_OUTPUT_TOKENS.schema.default && { max_output_tokens: maxOutputTokens }),
  };
}

function commentsOf(name: string, model: Model): string[] {
  const refused = printableAliases(model).filter((alias) => !isAllowed(alias, aliasPattern));
  return [
    ...(name === model.name
      ? []
      : [`${JSON.stringify(model.name)} cannot be a name in this file, so it is called otherwise.`]),
    ...refused.map((alias) => `The alias ${JSON.stringify(alias)} cannot stand in this file.`),
    ...(model.reasoning
      ? ["Only NAME-nonthinking, of this name or an alias, turns thinking off; without a file every such ending does."]
      : []),
  ];
}

/** Each once, in any case of letters. */
function printableAliases({ aliases }: Model): string[] {
  const byName = new Map(aliases.map((alias) => [alias.toLowerCase(), alias]));
  return [...byName.values()];
}

const isAllowed = (name: string, pattern: string): boolean => new RegExp(pattern).test(name);

/** The nearest name that a file may have. */
function printableName(name: string): string {
  const plain = name.replaceAll(/[\s*\p{Cc}\u202a-\u202e\u2066-\u2069]+/gu, "-").slice(0, 200);
  const bare = plain.replace(/(?:-nonthinking|\[1m\])+$/i, "");
  return isAllowed(bare, modelNamePattern) ? bare : "model";
}

/** A value of the settings may have a line feed. */
const comment = (...lines: readonly string[]): string =>
  lines.map((line) => ` ${line.replaceAll(/\s/g, " ")}`).join("\n");

function findKey(document: Document, path: readonly string[]): { commentBefore?: string | null } | undefined {
  const map = document.getIn(path.slice(0, -1), true);
  const pairs: readonly Pair[] = isMap(map) ? map.items : [];
  const key = pairs.find((pair) => isScalar(pair.key) && pair.key.value === path.at(-1))?.key;
  return isScalar(key) ? key : undefined;
}
