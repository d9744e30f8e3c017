import type { Header } from "../http-parser.ts";
import type { Wanted } from "./generation.ts";
import type { Cut } from "./wire-actions.ts";
import { type Usage, usageParts } from "../../../src/domain/usage.ts";

/**
 * The faults and changes for one request. Frames are server-sent events, counted from 1 in the order they are sent; a
 * whole body is one frame. Times are milliseconds; `Infinity` never ends.
 */
export interface Script extends Wanted {
  /** Why the script itself is invalid; the response is a 400 with this message. */
  problem?: string;
  /** Before the response. */
  pauseBodyMs?: number;
  earlyResponse?: boolean;
  /** Sent instead of a response. */
  insteadOfHead?: Cut | "half-head" | "garbage";
  garbageBytes?: number;
  /** The head. */
  earlyHints?: boolean;
  slowHeadMs?: number;
  status?: number;
  headers?: Header[];
  longHeadBytes?: number;
  redirect?: boolean;
  http10?: boolean;
  connectionClose?: boolean;
  /** What the model generates. */
  framesPerSecond?: number;
  bodyBytes?: number;
  /** Frames. */
  gaps?: { afterFrame: number; pauseMs: number }[];
  cut?: { afterFrame: number; how: Cut; insideNext: boolean };
  /** Refuses what strict chat templates refuse. */
  strict?: boolean;
  errorAfterFrame?: number;
  crlf?: boolean;
  comments?: boolean;
  splitBytes?: number;
  /** The end and the framing. */
  neverEnd?: boolean;
  truncateJsonFrame?: number;
  /** Added to the `Content-Length` of a whole body. */
  wrongLengthBy?: number;
  gzip?: boolean;
}

export class ScriptError extends Error {
  override name = "ScriptError";
}

/** The text after `=` and the frame after `@` of a directive. */
interface Argument {
  value: string | undefined;
  frame: number | undefined;
}

type Directive = (argument: Argument, script: Script) => Script;

/** The directives of the `x-simulate` header. */
const directives: Readonly<Record<string, Directive>> = {
  // Before the head.
  "slow-head": ({ value }) => ({ slowHeadMs: duration(value) }),
  "reset-before-head": () => ({ insteadOfHead: "reset" }),
  "close-before-head": () => ({ insteadOfHead: "close" }),
  // The first half of a head, then FIN.
  "half-head": () => ({ insteadOfHead: "half-head" }),
  // That many bytes that are not HTTP, then FIN.
  garbage: ({ value }) => ({ insteadOfHead: "garbage", garbageBytes: size(value ?? "64") }),
  // A 103 before the response.
  "early-hints": () => ({ earlyHints: true }),
  // Leaves the request's body in the socket for that long.
  "pause-body": ({ value }) => ({ pauseBodyMs: duration(value) }),
  // A response that does not wait for the request's body.
  "early-response": () => ({ earlyResponse: true }),

  // The head.
  status: ({ value }) => ({ status: count(value) }),
  "204": () => ({ status: 204 }),
  "304": () => ({ status: 304 }),
  redirect: () => ({ redirect: true }),
  "set-cookies": (_, { headers = [] }) => ({ headers: [...headers, ...twoCookies] }),
  header: ({ value = "" }, { headers = [] }) => ({ headers: [...headers, header(value)] }),
  "long-head": ({ value }) => ({ longHeadBytes: size(value ?? "1MB") }),
  // HTTP/1.0: the body ends with the connection.
  http10: () => ({ http10: true }),
  "connection-close": () => ({ connectionClose: true }),
  "reset-after-head": () => ({ cut: { afterFrame: 0, how: "reset", insideNext: false } }),
  "close-after-head": () => ({ cut: { afterFrame: 0, how: "close", insideNext: false } }),

  // What the model generates.
  tokens: ({ value }) => ({ tokens: count(value) }),
  // Tokens per second; 0: as fast as the client reads.
  rate: ({ value }) => ({ framesPerSecond: count(value) }),
  // The input and output tokens that the response reports: `usage=12,34`; parts may follow, cached input first.
  usage: ({ value = "" }) => ({ usage: usage(value) }),
  "no-usage": () => ({ usageMode: "none" }),
  "usage-null": () => ({ usageMode: "null" }),
  "no-done": () => ({ noDone: true }),
  // That many bytes (0 to 255 over and over) instead of the model's output.
  body: ({ value }) => ({ bodyBytes: size(value) }),
  "tiny-frames": ({ value }) => ({ tokens: count(value ?? "10000"), framesPerSecond: 0 }),
  // The first token has that size.
  "huge-frame": ({ value }) => ({ hugeTokenBytes: size(value ?? "50MB") }),
  // Endless tokens, as fast as the client reads.
  flood: () => ({ flood: true, framesPerSecond: 0 }),
  // Refuses a body as engines with strict templates do.
  strict: () => ({ strict: true }),

  // After a frame or in the middle of it: silence (`gap`), FIN (`die`) or RST (`reset`).
  gap: ({ value, frame }, { gaps = [] }) => ({ gaps: [...gaps, { afterFrame: frame ?? 1, pauseMs: duration(value) }] }),
  die: ({ frame }) => ({ cut: { afterFrame: frame ?? 1, how: "close", insideNext: false } }),
  reset: ({ frame }) => ({ cut: { afterFrame: frame ?? 1, how: "reset", insideNext: false } }),
  "die-mid-frame": ({ frame }) => ({ cut: { afterFrame: (frame ?? 1) - 1, how: "close", insideNext: true } }),
  "reset-mid-frame": ({ frame }) => ({ cut: { afterFrame: (frame ?? 1) - 1, how: "reset", insideNext: true } }),
  // An error inside the stream, which then ends cleanly.
  error: ({ frame }) => ({ errorAfterFrame: frame ?? 1 }),
  crlf: () => ({ crlf: true }),
  // A comment before each event.
  comments: () => ({ comments: true }),
  // Chunks and packets of that many bytes.
  split: ({ value }) => ({ splitBytes: Math.max(1, size(value)) }),

  // The end and the framing.
  // Everything except the end: the connection stays open and silent.
  "never-end": () => ({ neverEnd: true }),
  // Half of the frame's JSON, framed correctly.
  "truncate-json": ({ frame }) => ({ truncateJsonFrame: frame ?? 1 }),
  // A Content-Length that is too large by that much, or too small if negative.
  "wrong-length": ({ value }) => ({ wrongLengthBy: signed(value ?? "100") }),
  gzip: () => ({ gzip: true }),
};

const twoCookies: readonly Header[] = [
  ["set-cookie", "first=1; Path=/"],
  ["set-cookie", "second=2; HttpOnly; Expires=Wed, 21 Oct 2065 07:28:00 GMT"],
];

/**
 * Parses `slow-head=500ms; gap=2s@3; die@5`: directives separated by semicolons, each a name with an optional `=value`
 * and an optional `@frame`. A duration ends in `ms` or `s`, or is `forever`. A size may end in `KB`, `MB` or `GB`
 * (powers of 1024).
 * @throws ScriptError naming the part that is invalid
 */
export function parseScript(text: string): Script {
  const script: Script = {};
  for (const part of text.split(";")) {
    const trimmed = part.trim();
    if (trimmed === "") continue;
    // A header's value may contain an @, so a frame is digits at the very end.
    const [, name = "", value, frame] = /^([\w-]+)(?:=(.*?))?(?:@(\d+))?$/.exec(trimmed) ?? [];
    const directive = Object.hasOwn(directives, name) ? directives[name] : undefined;
    if (directive === undefined) throw new ScriptError(`x-simulate: unknown directive ${JSON.stringify(trimmed)}`);
    Object.assign(script, directive({ value, frame: frame === undefined ? undefined : Number(frame) }, script));
  }
  return script;
}

function duration(text = ""): number {
  if (text === "forever") return Infinity;
  const [, amount, unit] = /^(\d+(?:\.\d+)?)(ms|s)$/.exec(text) ?? [];
  if (amount === undefined)
    throw new ScriptError(`${JSON.stringify(text)} is not a duration such as 500ms, 2s or forever`);
  return Number(amount) * (unit === "s" ? 1000 : 1);
}

function size(text = ""): number {
  const [, amount, unit = ""] = /^(\d+)(KB|MB|GB)?$/.exec(text) ?? [];
  if (amount === undefined) throw new ScriptError(`${JSON.stringify(text)} is not a size such as 100, 64KB or 50MB`);
  const power = ["", "KB", "MB", "GB"].indexOf(unit);
  return Number(amount) * 1024 ** power;
}

function count(text = ""): number {
  if (!/^\d{1,9}$/.test(text)) throw new ScriptError(`${JSON.stringify(text)} is not a whole number`);
  return Number(text);
}

function signed(text: string): number {
  if (!/^[+-]?\d{1,9}$/.test(text)) throw new ScriptError(`${JSON.stringify(text)} is not a whole number`);
  return Number(text);
}

function usage(text: string): Usage {
  const [input, output, ...parts] = text.split(",");
  const tokens: Usage = { inputTokens: count(input), outputTokens: count(output) };
  for (const [at, part] of usageParts.slice(0, parts.length).entries()) tokens[part] = count(parts[at]);
  return tokens;
}

function header(text: string): Header {
  const colon = text.indexOf(":");
  if (colon < 1) throw new ScriptError(`${JSON.stringify(text)} is not a header such as retry-after: 5`);
  return [text.slice(0, colon), text.slice(colon + 1).trim()];
}
