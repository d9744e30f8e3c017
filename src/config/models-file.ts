import { type ValueError, ValueErrorType } from "@sinclair/typebox/errors";
import { Value } from "@sinclair/typebox/value";
import type { Backend, Catalog, Model, ModelRules } from "../domain/models.ts";
import type { Environment } from "./config.ts";
import { findContradictions } from "./models-contradictions.ts";
import { type ModelsFile, modelsFileSchema } from "./models-schema.ts";
import { invalid, readUpstreamUrl, upstreamAddress } from "./setting-kinds.ts";
import { readYaml, type YamlFault, type YamlPath, type YamlText } from "./yaml.ts";

/** What holds where the file says nothing: the settings of the same meaning. */
interface ModelsDefaults {
  rules: ModelRules;
  maxConcurrency: number | undefined;
  maxPrefillTokens?: number | undefined;
}

interface ModelsFileContext {
  path: string;
  environment: Environment;
  defaults: ModelsDefaults;
}

/** The lines of faults are for the operator; none has a key, nor a value that could be one. */
export type ParsedModelsFile = { catalog: Catalog } | { faults: readonly string[] };

/** More than a thousand models take. */
export const maxModelsFileBytes = 256 * 1024;

const maxFaults = 20;

export function parseModelsFile(bytes: Uint8Array, context: ModelsFileContext): ParsedModelsFile {
  const { path } = context;
  if (bytes.length > maxModelsFileBytes) return { faults: [`${path}: has more than ${maxModelsFileBytes} bytes`] };
  const text = decode(bytes);
  if (text === undefined) return { faults: [`${path}: is not text in UTF-8`] };
  const yaml = readYaml(text);
  if ("faults" in yaml) return { faults: linesOf(yaml.faults, path) };
  const schemaFaults = findSchemaFaults(yaml);
  if (schemaFaults.length > 0) return { faults: linesOf(schemaFaults, path) };
  // Checked above.
  const file = yaml.value as ModelsFile;
  const contradictions = findContradictions(file, yaml.lineOf, context.environment);
  if (contradictions.length > 0) return { faults: linesOf(contradictions, path) };
  return {
    catalog: catalogOf(file, yaml, { ...context, hash: new Bun.CryptoHasher("sha256").update(bytes).digest("hex") }),
  };
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function linesOf(faults: readonly YamlFault[], path: string): string[] {
  const inOrder = faults.toSorted((a, b) => a.line - b.line).slice(0, maxFaults);
  const lines = inOrder.map((fault) => `${path}:${fault.line}: ${memberName(fault.path)}${fault.problem}`);
  return inOrder.length === faults.length ? lines : [...lines, `${path}: has more faults than these`];
}

const maxShownName = 64;

/** `models."Qwen/Qwen3".aliases: `; a place in a list has a line, and no name. */
function memberName(path: YamlPath): string {
  const names = path.filter((part) => typeof part === "string");
  if (names.length === 0) return "";
  const shown = names.map((name) => (/^[\w-]+$/.test(name) ? name : JSON.stringify(name)));
  return `${shown.map((name) => name.slice(0, maxShownName)).join(".")}: `;
}

function findSchemaFaults(yaml: YamlText): YamlFault[] {
  const faults = new Map<string, YamlFault>();
  for (const error of Value.Errors(modelsFileSchema, yaml.value)) {
    // The first says what is wrong; what follows at the same place says what is missing in it.
    if (!faults.has(error.path)) faults.set(error.path, schemaFault(error, yaml));
    if (faults.size > maxFaults) break;
  }
  return [...faults.values()];
}

function schemaFault({ type, path: pointer, schema, value }: ValueError, yaml: YamlText): YamlFault {
  const path = partsOf(pointer);
  const line = yaml.lineOf(path);
  const allowed = String(schema["errorMessage"]);
  if (type === ValueErrorType.ObjectRequiredProperty) return { line, path, problem: `is missing; ${allowed}` };
  if (type !== ValueErrorType.ObjectAdditionalProperties) {
    const isBare = schema["type"] === "string" && (typeof value === "number" || typeof value === "boolean");
    const hint = isBare ? `; without quotes this is a ${typeof value}` : "";
    return { line, path, problem: `${value === null ? "is empty" : "its value is not allowed"}; ${allowed}${hint}` };
  }
  const around = path.slice(0, -1);
  const named: unknown = schema["propertyNames"];
  if (named !== undefined) {
    const { errorMessage } = named as { errorMessage: string };
    return { line, path: around, problem: `a name is not allowed; ${errorMessage}` };
  }
  const known = Object.keys(schema["properties"] as object).join(", ");
  // Without a blank after the colon, the name of a member ends in its value.
  const name = path.at(-1);
  const shown =
    typeof name === "string" && /^[a-z]\w{0,23}$/i.test(name) ? `${name} is unknown` : "a member is unknown";
  return { line, path: around, problem: `${shown}; use ${known}` };
}

/** The parts of a JSON pointer; places in lists are numbers. */
function partsOf(pointer: string): YamlPath {
  const parts = pointer.split("/").slice(1);
  return parts.map((part, depth) => {
    const text = part.replaceAll("~1", "/").replaceAll("~0", "~");
    // Lists stand only below the members of a model.
    return depth === 3 ? Number(text) : text;
  });
}

function catalogOf(
  file: ModelsFile,
  { namesIn }: YamlText,
  { path, hash, environment, defaults }: ModelsFileContext & { hash: string },
): Catalog {
  const models = namesIn(["models"]).flatMap((name) => {
    const given = file.models?.[name];
    return given === undefined ? [] : [modelOf(name, given, defaults.rules)];
  });
  const wanted = file.default_model?.toLowerCase();
  return {
    backends: namesIn(["backends"]).flatMap((name) => {
      const given = file.backends[name];
      return given === undefined ? [] : [backendOf(name, given, environment, defaults)];
    }),
    models,
    defaultModel: models.find(({ name }) => name.toLowerCase() === wanted)?.name,
    unknownNames: "refuse",
    nonThinkingNames: "own",
    listAliases: file.list_aliases ?? false,
    otherModels: { ...defaults.rules, reasoning: false },
    file: { path, hash },
  };
}

function backendOf(
  name: string,
  given: ModelsFile["backends"][string],
  environment: Environment,
  { maxConcurrency, maxPrefillTokens }: ModelsDefaults,
): Backend {
  const url = readUpstreamUrl(given.url);
  if (url === invalid) throw new Error("The address was checked before");
  const { baseUrl, socket } = upstreamAddress(String(url));
  return {
    name,
    url: String(url),
    baseUrl,
    socket,
    apiKey: given.api_key_env === undefined ? undefined : environment[given.api_key_env],
    maxConcurrency: given.max_concurrency ?? maxConcurrency,
    maxPrefillTokens: given.max_prefill_tokens ?? maxPrefillTokens,
    spill: given.spill ?? false,
    retry503: given.retry_503 ?? false,
    discover: given.discover ?? false,
    cachedInInput: given.cached_in_input,
    health: given.health ?? "/health",
    priority: given.priority,
    engineMembers: given.engine_members,
  };
}

function modelOf(name: string, given: NonNullable<ModelsFile["models"]>[string], rules: ModelRules): Model {
  return {
    name,
    servedAs: given.served_as ?? name,
    aliases: given.aliases ?? [],
    backends: given.backends,
    kind: given.kind,
    reasoning: given.reasoning ?? false,
    hanGuard: given.han_guard ?? rules.hanGuard,
    forceStreamUsage: given.force_stream_usage ?? rules.forceStreamUsage,
    clientRules: given.client_rules ?? rules.clientRules,
    privateCache: given.private_cache === "off" ? undefined : given.private_cache,
    contextTokens: given.context_tokens ?? rules.contextTokens,
    maxOutputTokens: given.max_output_tokens ?? rules.maxOutputTokens,
  };
}
