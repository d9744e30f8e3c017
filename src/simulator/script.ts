import type { Header } from "./answer.ts";
import type { Cut } from "./wire-actions.ts";

/**
 * What to do differently for one request. Frames are server-sent events counted from 1 as they are sent; a whole body
 * is one frame. Times are milliseconds, `Infinity` for ever.
 */
export interface Script {
  /** What is wrong with the script itself: the answer is a 400 that says so. */
  problem?: string;
  /** What happens to the request before it is answered. */
  pauseBodyMs?: number;
  earlyAnswer?: boolean;
  /** Something else than an answer. */
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
  /** What the model says. */
  tokens?: number;
  framesPerSecond?: number;
  usage?: { inputTokens: number; outputTokens: number };
  usageMode?: "none" | "null";
  noDone?: boolean;
  bodyBytes?: number;
  /** Frames. */
  gaps?: { afterFrame: number; pauseMs: number }[];
  cut?: { afterFrame: number; how: Cut; insideNext: boolean };
  hugeTokenBytes?: number;
  flood?: boolean;
  errorAfterFrame?: number;
  crlf?: boolean;
  comments?: boolean;
  splitBytes?: number;
  /** The end and the framing. */
  neverEnd?: boolean;
  truncateJsonFrame?: number;
  /** Added to the announced length of a whole body. */
  wrongLengthBy?: number;
  gzip?: boolean;
}

export class ScriptError extends Error {
  override name = "ScriptError";
}

/** The part of a directive after `=`, and the frame after `@`. */
interface Argument {
  value: string | undefined;
  frame: number | undefined;
}

type Directive = (argument: Argument, script: Script) => Script;

/** The words of the `x-simulate` header; the comments say what the client gets. */
const directives: Readonly<Record<string, Directive>> = {
  // Before the head.
  "slow-head": ({ value }) => ({ slowHeadMs: duration(value) }),
  "reset-before-head": () => ({ insteadOfHead: "reset" }),
  "close-before-head": () => ({ insteadOfHead: "close" }),
  // The first half of a head, then the end of the connection.
  "half-head": () => ({ insteadOfHead: "half-head" }),
  // So many bytes that are not HTTP, then the end of the connection.
  garbage: ({ value }) => ({ insteadOfHead: "garbage", garbageBytes: size(value ?? "64") }),
  // A 103 ahead of the answer.
  "early-hints": () => ({ earlyHints: true }),
  // A backend that leaves the request's body in the socket for that long.
  "pause-body": ({ value }) => ({ pauseBodyMs: duration(value) }),
  // An answer that does not wait for the request's body.
  "early-answer": () => ({ earlyAnswer: true }),

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

  // What the model says.
  tokens: ({ value }) => ({ tokens: count(value) }),
  // Tokens per second; 0 as fast as they are read.
  rate: ({ value }) => ({ framesPerSecond: count(value) }),
  // Input and output tokens that the answer reports, `usage=12,34`.
  usage: ({ value = "" }) => ({ usage: usage(value) }),
  "no-usage": () => ({ usageMode: "none" }),
  "usage-null": () => ({ usageMode: "null" }),
  "no-done": () => ({ noDone: true }),
  // So many bytes (0 to 255 over and over) instead of what the model says.
  body: ({ value }) => ({ bodyBytes: size(value) }),
  "tiny-frames": ({ value }) => ({ tokens: count(value ?? "10000"), framesPerSecond: 0 }),
  // A first token of that size.
  "huge-frame": ({ value }) => ({ hugeTokenBytes: size(value ?? "50MB") }),
  // Tokens without end, as fast as they are read.
  flood: () => ({ flood: true, framesPerSecond: 0 }),

  // Frames: silence, a connection that ends (`die`, FIN) or is reset (RST), after a frame or in the middle of it.
  gap: ({ value, frame }, { gaps = [] }) => ({ gaps: [...gaps, { afterFrame: frame ?? 1, pauseMs: duration(value) }] }),
  die: ({ frame }) => ({ cut: { afterFrame: frame ?? 1, how: "close", insideNext: false } }),
  reset: ({ frame }) => ({ cut: { afterFrame: frame ?? 1, how: "reset", insideNext: false } }),
  "die-mid-frame": ({ frame }) => ({ cut: { afterFrame: (frame ?? 1) - 1, how: "close", insideNext: true } }),
  "reset-mid-frame": ({ frame }) => ({ cut: { afterFrame: (frame ?? 1) - 1, how: "reset", insideNext: true } }),
  // An error told inside the stream, which then ends cleanly.
  error: ({ frame }) => ({ errorAfterFrame: frame ?? 1 }),
  crlf: () => ({ crlf: true }),
  // A comment ahead of each event.
  comments: () => ({ comments: true }),
  // Chunks, and packets, of so many bytes.
  split: ({ value }) => ({ splitBytes: Math.max(1, size(value)) }),

  // The end and the framing.
  // Everything but the end: the connection stays open and silent.
  "never-end": () => ({ neverEnd: true }),
  // Half of the frame's JSON, properly framed.
  "truncate-json": ({ frame }) => ({ truncateJsonFrame: frame ?? 1 }),
  // A Content-Length that is so much too large, or too small where negative.
  "wrong-length": ({ value }) => ({ wrongLengthBy: signed(value ?? "100") }),
  gzip: () => ({ gzip: true }),
};

const twoCookies: readonly Header[] = [
  ["set-cookie", "first=1; Path=/"],
  ["set-cookie", "second=2; HttpOnly; Expires=Wed, 21 Oct 2065 07:28:00 GMT"],
];

/**
 * Reads `slow-head=500ms; gap=2s@3; die@5`: directives between semicolons, each a word, `=` and a value where it takes
 * one, `@` and a frame where it happens after a frame. Durations end in `ms` or `s`, or are `forever`; sizes may end in `KB`, `MB` or `GB`, powers of 1024.
 * @throws ScriptError with a sentence that says what was not understood
 */
export function parseScript(text: string): Script {
  const script: Script = {};
  for (const part of text.split(";")) {
    const trimmed = part.trim();
    if (trimmed === "") continue;
    // A header's value may hold an @ of its own, so a frame is digits at the very end.
    const [, name = "", value, frame] = /^([\w-]+)(?:=(.*?))?(?:@(\d+))?$/.exec(trimmed) ?? [];
    const directive = Object.hasOwn(directives, name) ? directives[name] : undefined;
    if (directive === undefined) throw new ScriptError(`x-simulate does not know ${JSON.stringify(trimmed)}`);
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

function usage(text: string): { inputTokens: number; outputTokens: number } {
  const [input, output] = text.split(",");
  return { inputTokens: count(input), outputTokens: count(output) };
}

function header(text: string): Header {
  const colon = text.indexOf(":");
  if (colon < 1) throw new ScriptError(`${JSON.stringify(text)} is not a header such as retry-after: 5`);
  return [text.slice(0, colon), text.slice(colon + 1).trim()];
}
