import { type Environment, variableNames } from "./config.ts";
import { type ModelsFile, upstreamUrl } from "./models-schema.ts";
import { invalid, visibleAscii } from "./setting-kinds.ts";
import type { YamlFault, YamlPath, YamlText } from "./yaml.ts";

type Say = (path: YamlPath, problem: string) => void;

/** What is wrong in a file whose members are all allowed one by one. */
export function findContradictions(
  { backends, models = {}, default_model: byDefault }: ModelsFile,
  lineOf: YamlText["lineOf"],
  environment: Environment,
): YamlFault[] {
  const faults: YamlFault[] = [];
  const say: Say = (path, problem) => faults.push({ line: lineOf(path), path, problem });
  for (const [name, { url, api_key_env: variable }] of Object.entries(backends)) {
    if (upstreamUrl.read(url) === invalid)
      say(["backends", name, "url"], `its value is not allowed; use ${upstreamUrl.allowed}`);
    const problem = variable === undefined ? undefined : findKeyProblem(variable, environment);
    if (problem !== undefined) say(["backends", name, "api_key_env"], problem);
  }
  for (const [name, { backends: named, private_cache: shares = "off" }] of Object.entries(models)) {
    for (const [at, backend] of named.entries()) {
      const path = ["models", name, "backends", at];
      if (!Object.hasOwn(backends, backend))
        say(path, `${quoted(backend)} is no backend of this file; use ${listed(Object.keys(backends))}`);
      else if (named.indexOf(backend) < at) say(path, `${quoted(backend)} stands here twice`);
    }
    // What a body says to the engine is written before one is chosen.
    if (new Set(named.map((one) => backends[one]?.priority)).size > 1)
      say(["models", name, "backends"], "they differ in priority; use the same for all of a model");
    if (shares !== "off" && (environment["SECRET_KEY"] ?? "") === "")
      say(["models", name, "private_cache"], "it requires SECRET_KEY; set it, the same everywhere");
  }
  sayOfNames(models, lineOf, say);
  if (byDefault !== undefined && !Object.keys(models).some((name) => sameName(name, byDefault)))
    say(["default_model"], "is no model of this file; use the name of one");
  return faults;
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

/** Requests may name a model by each of these: none may mean two models, or be taken for a mark that is read before it. */
function sayOfNames(models: NonNullable<ModelsFile["models"]>, lineOf: YamlText["lineOf"], say: Say): void {
  const names = Object.keys(models).map((name): [string, YamlPath] => [name, ["models", name]]);
  const aliases = Object.entries(models).flatMap(([model, { aliases: own = [] }]) =>
    own.map((name, at): [string, YamlPath] => [name, ["models", model, "aliases", at]]),
  );
  const seen = new Map<string, YamlPath>();
  for (const [name, path] of [...names, ...aliases]) {
    const lower = name.toLowerCase();
    const ending = markEndings.find((mark) => lower.endsWith(mark));
    const before = seen.get(lower);
    if (ending !== undefined) say(path, `${quoted(name)} ends in ${ending}, which is not part of a name`);
    else if (before === undefined) seen.set(lower, path);
    else say(path, `${quoted(name)} stands for a model twice, in any case of letters; see line ${lineOf(before)}`);
  }
}

/** Taken off a name before it is looked up. */
const markEndings = ["-nonthinking", "[1m]"];

const sameName = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();

const maxListed = 5;

const quoted = (name: string): string => JSON.stringify(name.length > 64 ? `${name.slice(0, 64)}…` : name);

const listed = (names: readonly string[]): string =>
  names.length > maxListed ? "the name of one" : `one of ${names.join(", ")}`;
