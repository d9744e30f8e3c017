import { type Environment, variableNames } from "./config.ts";
import { type ModelsFile, upstreamUrl } from "./models-schema.ts";
import { invalid, visibleAscii } from "./setting-kinds.ts";
import type { YamlFault, YamlPath, YamlText } from "./yaml.ts";

interface Contradiction {
  path: YamlPath;
  problem: string;
}

/** What is wrong in a file whose members are all allowed one by one. */
export function findContradictions(
  file: ModelsFile,
  lineOf: YamlText["lineOf"],
  environment: Environment,
): YamlFault[] {
  const { backends, models = {}, default_model: byDefault } = file;
  const problems = [
    ...Object.entries(backends).flatMap(([name, backend]) => backendProblems(name, backend, environment)),
    ...Object.entries(models).flatMap(([name, model]) => backendsOfModelProblems(name, model.backends, backends)),
    ...nameProblems(models, lineOf),
    ...Object.entries(models).flatMap(([name, model]) => engineProblems(name, model, backends, environment)),
  ];
  if (byDefault !== undefined && !Object.keys(models).some((name) => sameName(name, byDefault))) {
    problems.push({ path: ["default_model"], problem: "is no model of this file; use the name of one" });
  }
  return problems.map(({ path, problem }) => ({ line: lineOf(path), path, problem }));
}

function backendProblems(
  name: string,
  { url, api_key_env: variable }: ModelsFile["backends"][string],
  environment: Environment,
): Contradiction[] {
  const problems: Contradiction[] = [];
  if (upstreamUrl.read(url) === invalid) {
    problems.push({ path: ["backends", name, "url"], problem: `its value is not allowed; use ${upstreamUrl.allowed}` });
  }
  const problem = variable === undefined ? undefined : findKeyProblem(variable, environment);
  if (problem !== undefined) problems.push({ path: ["backends", name, "api_key_env"], problem });
  return problems;
}

/** Read by other commands, and by the driver of PostgreSQL. */
const otherOwn = /^(?:TOLLGATE_\w+|PG[A-Z]+)$/;

/**
 * Who can edit the file must not have a secret of Tollgate's sent to an address of theirs. The variable is not named:
 * it may be the key itself, in the wrong place.
 */
function findKeyProblem(variable: string, environment: Environment): string | undefined {
  if (variableNames.includes(variable) || otherOwn.test(variable)) {
    return "a setting of Tollgate is never sent to a backend; use a variable of another name";
  }
  const key = environment[variable] ?? "";
  if (key === "") return "this environment variable is not set; set it to the key, or leave the member out";
  if (new RegExp(visibleAscii).test(key)) return undefined;
  return "the value of this environment variable is no key; use visible ASCII characters";
}

function backendsOfModelProblems(
  name: string,
  named: readonly string[],
  backends: ModelsFile["backends"],
): Contradiction[] {
  return named.flatMap((backend, at) => {
    const path = ["models", name, "backends", at];
    if (!Object.hasOwn(backends, backend)) {
      return [{ path, problem: `${quoted(backend)} is no backend of this file; use ${listed(Object.keys(backends))}` }];
    }
    return named.indexOf(backend) < at ? [{ path, problem: `${quoted(backend)} stands here twice` }] : [];
  });
}

/** What a body says to the engine is written before one is chosen. */
function engineProblems(
  name: string,
  { backends: named, private_cache: shares = "off" }: NonNullable<ModelsFile["models"]>[string],
  backends: ModelsFile["backends"],
  { SECRET_KEY = "" }: Environment,
): Contradiction[] {
  const orders = new Set(named.map((one) => backends[one]?.priority));
  return [
    ...(orders.size > 1
      ? [{ path: ["models", name, "backends"], problem: "they differ in priority; use the same for all of a model" }]
      : []),
    ...(shares !== "off" && SECRET_KEY === ""
      ? [{ path: ["models", name, "private_cache"], problem: "it requires SECRET_KEY; set it, the same everywhere" }]
      : []),
  ];
}

/** Requests may name a model by each of these: none may mean two models, or be taken for a mark that is read before it. */
function nameProblems(models: NonNullable<ModelsFile["models"]>, lineOf: YamlText["lineOf"]): Contradiction[] {
  const seen = new Map<string, YamlPath>();
  const entries = Object.entries(models).map(([name, model]) => ({ name, aliases: model.aliases ?? [] }));
  const named = [
    ...entries.map(({ name }) => ({ name, path: ["models", name] })),
    ...entries.flatMap(({ name: model, aliases }) =>
      aliases.map((name, at) => ({ name, path: ["models", model, "aliases", at] })),
    ),
  ];
  return named.flatMap(({ name, path }) => {
    const ending = markEndings.find((mark) => name.toLowerCase().endsWith(mark));
    if (ending !== undefined)
      return [{ path, problem: `${quoted(name)} ends in ${ending}, which is not part of a name` }];
    const before = seen.get(name.toLowerCase());
    seen.set(name.toLowerCase(), before ?? path);
    if (before === undefined) return [];
    return [
      { path, problem: `${quoted(name)} stands for a model twice, in any case of letters; see line ${lineOf(before)}` },
    ];
  });
}

/** Taken off a name before it is looked up. */
const markEndings = ["-nonthinking", "[1m]"];

const sameName = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();

const maxListed = 5;

const quoted = (name: string): string => JSON.stringify(name.length > 64 ? `${name.slice(0, 64)}…` : name);

const listed = (names: readonly string[]): string =>
  names.length > maxListed ? "the name of one" : `one of ${names.join(", ")}`;
