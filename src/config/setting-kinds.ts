import { readFileSync } from "node:fs";
import {
  type StringOptions,
  type TInteger,
  type TNumber,
  type TOptional,
  type TSchema,
  type TString,
  type TUnsafe,
  Type,
} from "@sinclair/typebox";

/** One environment variable: how its text is parsed, its schema, and the description of valid values. */
export interface Variable<S extends TSchema> {
  schema: S;
  read: (text: string) => unknown;
  allowed: string;
  /** The value of a secret is never shown, not even an invalid one. */
  secret?: boolean;
}

export const invalid = Symbol("invalid");

export const integer = (options: { minimum: number; maximum: number; default?: number }): Variable<TInteger> => ({
  schema: Type.Integer(options),
  read: (text: string) => (/^\d{1,16}$/.test(text) ? Number(text) : invalid),
  allowed: `a whole number from ${options.minimum} to ${options.maximum}`,
});

export const optionalInteger = (options: { minimum: number; maximum: number }): Variable<TOptional<TInteger>> => ({
  ...integer(options),
  schema: Type.Optional(Type.Integer(options)),
});

/** JavaScript timers overflow above 2^31 ms, which is 2 147 483 seconds. */
const maxSeconds = 2_000_000;

export const seconds = (options: { default: number; exclusiveMinimum?: number }): Variable<TNumber> => ({
  schema: Type.Number({ minimum: 0, maximum: maxSeconds, ...options }),
  read: (text: string) => (/^\d{1,9}(\.\d{1,9})?$/.test(text) ? Number(text) : invalid),
  allowed: `seconds${options.exclusiveMinimum === undefined ? "" : " above 0"}, up to ${maxSeconds}, decimals allowed`,
});

export const choice = <const T extends string>(values: readonly T[], otherwise: NoInfer<T>): Variable<TUnsafe<T>> => ({
  schema: Type.Unsafe<T>(
    Type.Union(
      values.map((value) => Type.Literal(value)),
      { default: otherwise },
    ),
  ),
  read: (text: string) => text.toLowerCase(),
  allowed: `one of ${values.join(", ")}`,
});

export const text = <S extends TSchema>(schema: S, allowed: string): Variable<S> => ({
  schema,
  read: (value: string) => value,
  allowed,
});

export const optionalText = (allowed: string, options: StringOptions = {}): Variable<TOptional<TString>> =>
  text(Type.Optional(Type.String(options)), allowed);

export const list = (value: string): string[] =>
  value
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");

export function readClientRules(value: string): unknown {
  const names = list(value.toLowerCase());
  if (names.length === 1 && (names[0] === "auto" || names[0] === "off")) return names[0];
  return names.length > 0 ? [...new Set(names)] : invalid;
}

export function readUpstreamUrl(value: string): unknown {
  if (value.startsWith("unix:")) return value;
  const url = URL.parse(value);
  if (url === null || !["http:", "https:"].includes(url.protocol)) return invalid;
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") return invalid;
  return url.origin + url.pathname.replace(/\/+$/, "").replace(/\/v1$/, "").replace(/\/+$/, "");
}

export function readOrigins(value: string): unknown {
  if (value.trim() === "*") return "*";
  const origins = list(value);
  return origins.length > 0 && origins.every(isOrigin) ? origins : invalid;
}

/** Browser extensions and browser-based apps have their own schemes, for which `URL` gives no origin. */
function isOrigin(given: string): boolean {
  const url = URL.parse(given);
  return url !== null && url.host !== "" && given === `${url.protocol}//${url.host}`;
}

/** What a file has, but for white space around it. */
export function readFile(path: string): unknown {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return invalid;
  }
}

export const visibleAscii = "^[\\x21-\\x7e]+$";
export const hostPattern = "^(?!unix:)[^\\s/]+$";
/** An origin to which secrets may be sent. */
export const securePattern =
  "^(?:https://[^\\s/?#@]+|http://(?:localhost|127\\.\\d+\\.\\d+\\.\\d+|\\[::1\\])(?::\\d+)?)";
/** A socket's path has at most 107 bytes (unix(7)). */
export const socketPattern = "^unix:/[\\x21-\\x7e]{1,106}$";
export const upstreamPattern = `^https?://|${socketPattern}`;

/** A secret that a person may have chosen. */
export const chosenSecret = (
  options: { minLength: number; minDifferent: number },
  allowed: string,
): Variable<TOptional<TString>> => ({
  schema: Type.Optional(Type.String()),
  read: (value: string) => {
    const characters = Array.from(value);
    const isEnough = characters.length >= options.minLength && new Set(characters).size >= options.minDifferent;
    return isEnough ? value : invalid;
  },
  allowed,
  secret: true,
});

/** @param name names it in the log */
export function upstreamAddress(name: string) {
  const isSocket = name.startsWith("unix:");
  return {
    name,
    /** Origin and path prefix; no trailing slash and no `/v1`. */
    baseUrl: isSocket ? "http://localhost" : name,
    /** The path of a UNIX socket; undefined: the origin says where to connect. */
    socket: isSocket ? name.slice("unix:".length) : undefined,
  };
}
