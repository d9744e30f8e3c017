import { readFileSync } from "node:fs";
import { replacedByFile } from "./contradictions.ts";
import { type Environment, variables } from "./config.ts";

/** The settings as the console shows them. @param readText reads a file of the working folder; throws if there is none */
export function reportSettings(environment: Environment, readText = (file: string) => readFileSync(file, "utf8")) {
  const fromFiles = new Map(assignmentsIn(".env", readText));
  const hasFile = (environment["MODELS_FILE"] ?? "") !== "";
  return Object.entries(variables).map(([name, variable]) => {
    const given = environment[name] ?? "";
    const isSet = given !== "";
    const isSecret = "secret" in variable && variable.secret;
    const isReplaced = hasFile && replacedByFile.includes(name);
    const byDefault: unknown = isReplaced ? undefined : variable.schema.default;
    return {
      name,
      /** Null if it is unset, or a secret, or if `MODELS_FILE` says it instead. */
      value: isSecret ? null : isSet ? given : textOf(byDefault),
      isSet,
      isSecret,
      origin: !isSet
        ? ("default" as const)
        : fromFiles.get(name) === given
          ? (".env" as const)
          : ("environment" as const),
      allowed: variable.allowed,
    };
  });
}

function textOf(value: unknown): string | null {
  if (value === undefined) return null;
  return Array.isArray(value) ? value.join() : JSON.stringify(value).replace(/^"(.*)"$/, "$1");
}

function assignmentsIn(file: string, readText: (file: string) => string): [string, string][] {
  try {
    return [...readText(file).matchAll(/^[ \t]*(?:export[ \t]+)?(\w+)[ \t]*=[ \t]*(.*?)[ \t]*\r?$/gm)].map(
      ([, name = "", value = ""]) => [name, value.replace(/^(["'`])(.*)\1$/, "$2")],
    );
  } catch {
    return [];
  }
}
