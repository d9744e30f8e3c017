import { readFileSync } from "node:fs";
import { replacedByFile } from "./contradictions.ts";
import { type Environment, variables } from "./config.ts";

/** One setting as the console shows it. */
interface ReportedSetting {
  name: string;
  /** Null if it is unset, or a secret, or if `MODELS_FILE` says it instead. */
  value: string | null;
  isSet: boolean;
  isSecret: boolean;
  origin: "environment" | ".env" | "default";
  /** The values that are allowed, in words. */
  allowed: string;
}

/** @param readText reads a file of the working folder; throws if there is none */
export function reportSettings(
  environment: Environment,
  readText = (file: string) => readFileSync(file, "utf8"),
): ReportedSetting[] {
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
      value: isSecret ? null : isSet ? given : textOf(byDefault),
      isSet,
      isSecret,
      origin: !isSet ? "default" : fromFiles.get(name) === given ? ".env" : "environment",
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
