import { STATUS_CODES } from "node:http";
import { type SimulatedResponse, tick, type Header } from "./answer.ts";
import { type Content, contentOf } from "./content.ts";
import type { WireAction } from "./wire-actions.ts";
import type { Script } from "./script.ts";

export interface AnsweredRequest {
  method: string;
  path: string;
  keepAlive: boolean;
  /** How long the model works on an answer that is sent whole. */
  generationMs: number;
}

/** An answer and a script, as what happens on the wire. An empty script: the answer as a healthy server sends it. */
export function* movesOf(answer: SimulatedResponse, script: Script, request: AnsweredRequest): Generator<WireAction> {
  if (script.slowHeadMs !== undefined) yield { pauseMs: script.slowHeadMs };
  if (request.generationMs > 0) yield { pauseMs: request.generationMs };
  if (script.earlyHints === true) yield "HTTP/1.1 103 Early Hints\r\nlink: </style.css>; rel=preload\r\n\r\n";
  const content = contentOf(answer, script, request.path);
  const framing = framingOf(answer, script, content);
  const head = headText(answer, script, framing, request.keepAlive);
  if (script.insteadOfHead !== undefined) {
    yield* insteadOfHead(head, script);
    return;
  }
  yield head;
  if (request.method === "HEAD" || framing === "none") return;
  yield* bodyMoves(content, script, framing);
  yield* ending(script, framing);
}

/** Whether the connection is of no use after the answer. */
export function closesAfter(script: Script): boolean {
  return script.connectionClose === true || script.http10 === true;
}

type Framing = "none" | "chunked" | "until-close" | { length: number };

function framingOf({ status }: SimulatedResponse, script: Script, content: Content): Framing {
  // RFC 9110 section 6.4.1: these have no body, whatever their headers say.
  if (status === 204 || status === 304) return "none";
  if (script.http10 === true) return "until-close";
  if (content.length === undefined) return "chunked";
  // One byte more than there is, for a body that never ends.
  return { length: Math.max(0, content.length + (script.wrongLengthBy ?? (script.neverEnd === true ? 1 : 0))) };
}

function headText(answer: SimulatedResponse, script: Script, framing: Framing, keepAlive: boolean): string {
  const headers: Header[] = [
    ["date", new Date().toUTCString()],
    ["server", "tollgate-simulator"],
  ];
  if (framing !== "none") headers.push(...answer.headers);
  headers.push(...(script.headers ?? []));
  if (script.gzip === true) headers.push(["content-encoding", "gzip"]);
  if (script.longHeadBytes !== undefined) headers.push(["x-long", "x".repeat(script.longHeadBytes)]);
  if (framing === "chunked") headers.push(["transfer-encoding", "chunked"]);
  if (typeof framing === "object") headers.push(["content-length", String(framing.length)]);
  if (!keepAlive || closesAfter(script)) headers.push(["connection", "close"]);
  const version = script.http10 === true ? "HTTP/1.0" : "HTTP/1.1";
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`);
  return `${version} ${answer.status} ${STATUS_CODES[answer.status] ?? "Unknown"}\r\n${lines.join("")}\r\n`;
}

function* insteadOfHead(head: string, script: Script): Generator<WireAction> {
  if (script.insteadOfHead === "garbage") yield "\u0001 garbage, not HTTP\n".repeat(64).slice(0, script.garbageBytes);
  if (script.insteadOfHead === "half-head") yield head.slice(0, head.length / 2);
  yield { cut: script.insteadOfHead === "reset" ? "reset" : "close" };
}

function* bodyMoves({ pieces }: Content, script: Script, framing: Framing): Generator<WireAction> {
  const framed = framing === "chunked" ? chunk : (piece: string | Uint8Array) => [piece];
  let frame = 0;
  yield* movesAfter(frame, script);
  for (const piece of pieces) {
    if (piece === tick) {
      yield tick;
      continue;
    }
    if (script.cut?.insideNext === true && script.cut.afterFrame === frame) {
      yield* halfOf(framed(piece));
      yield { cut: script.cut.how };
      return;
    }
    if (script.splitBytes === undefined) yield* framed(piece);
    else yield* splitMoves(piece, script.splitBytes, framed);
    frame++;
    yield* movesAfter(frame, script);
  }
}

function* movesAfter(frame: number, { gaps, cut }: Script): Generator<WireAction> {
  for (const { afterFrame, pauseMs } of gaps ?? []) {
    if (afterFrame === frame) yield { pauseMs };
  }
  if (cut !== undefined && !cut.insideNext && cut.afterFrame === frame) yield { cut: cut.how };
}

/** One chunk of RFC 9112 section 7.1. */
function chunk(piece: string | Uint8Array): (string | Uint8Array)[] {
  const size = Buffer.byteLength(piece).toString(16);
  return typeof piece === "string" ? [`${size}\r\n${piece}\r\n`] : [`${size}\r\n`, piece, "\r\n"];
}

function* halfOf(parts: readonly (string | Uint8Array)[]): Generator<WireAction> {
  const bytes = Buffer.concat(parts.map((part) => Buffer.from(part as string)));
  yield bytes.subarray(0, bytes.length / 2);
}

/** The pauses send every part in a packet of its own. */
function* splitMoves(
  piece: string | Uint8Array,
  partBytes: number,
  framed: (piece: Uint8Array) => (string | Uint8Array)[],
): Generator<WireAction> {
  const bytes = Buffer.from(piece as string);
  for (let at = 0; at < bytes.length; at += partBytes) {
    yield* framed(bytes.subarray(at, at + partBytes));
    yield { pauseMs: 0 };
  }
}

function* ending(script: Script, framing: Framing): Generator<WireAction> {
  if (script.neverEnd === true) yield { pauseMs: Infinity };
  if (framing === "chunked") yield "0\r\n\r\n";
  if (script.wrongLengthBy !== undefined) yield { cut: "close" };
}
