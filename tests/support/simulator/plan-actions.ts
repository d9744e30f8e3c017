import { STATUS_CODES } from "node:http";
import { type PlannedBody, planBody } from "./response-body.ts";
import type { Script } from "./script.ts";
import type { Header } from "../http-parser.ts";
import { type SimulatedResponse, tick } from "./simulated-response.ts";
import type { WireAction } from "./wire-actions.ts";

export interface PlannedRequest {
  method: string;
  path: string;
  keepAlive: boolean;
  /** How long the model takes for a response that is sent whole. */
  generationMs: number;
}

/** Turns a response and a script into the actions on the wire. With an empty script they are those of a healthy server. */
export function* planActions(
  response: SimulatedResponse,
  script: Script,
  request: PlannedRequest,
): Generator<WireAction> {
  if (script.slowHeadMs !== undefined) yield { pauseMs: script.slowHeadMs };
  if (request.generationMs > 0) yield { pauseMs: request.generationMs };
  if (script.earlyHints === true) yield "HTTP/1.1 103 Early Hints\r\nlink: </style.css>; rel=preload\r\n\r\n";
  const body = planBody(response, script, request.path);
  const framing = framingOf(response, script, body);
  const head = headText(response, script, framing, request.keepAlive);
  if (script.insteadOfHead !== undefined) {
    yield* insteadOfHead(head, script);
    return;
  }
  yield head;
  if (request.method === "HEAD" || framing === "none") return;
  yield* bodyActions(body, script, framing);
  yield* ending(script, framing);
}

/** Whether the script ends the connection after the response. */
export function closesAfter(script: Script): boolean {
  return script.connectionClose === true || script.http10 === true;
}

type Framing = "none" | "chunked" | "until-close" | { length: number };

function framingOf({ status }: SimulatedResponse, script: Script, body: PlannedBody): Framing {
  // RFC 9110 section 6.4.1: no body, whatever the headers say.
  if (status === 204 || status === 304) return "none";
  if (script.http10 === true) return "until-close";
  if (body.length === undefined) return "chunked";
  // A body that never ends announces one byte more than it has.
  return { length: Math.max(0, body.length + (script.wrongLengthBy ?? (script.neverEnd === true ? 1 : 0))) };
}

function headText(response: SimulatedResponse, script: Script, framing: Framing, keepAlive: boolean): string {
  const headers: Header[] = [
    ["date", new Date().toUTCString()],
    ["server", "tollgate-simulator"],
  ];
  if (framing !== "none") headers.push(...response.headers);
  headers.push(...(script.headers ?? []));
  if (script.gzip === true) headers.push(["content-encoding", "gzip"]);
  if (script.longHeadBytes !== undefined) headers.push(["x-long", "x".repeat(script.longHeadBytes)]);
  if (framing === "chunked") headers.push(["transfer-encoding", "chunked"]);
  if (typeof framing === "object") headers.push(["content-length", String(framing.length)]);
  if (!keepAlive || closesAfter(script)) headers.push(["connection", "close"]);
  const version = script.http10 === true ? "HTTP/1.0" : "HTTP/1.1";
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`);
  return `${version} ${response.status} ${STATUS_CODES[response.status] ?? "Unknown"}\r\n${lines.join("")}\r\n`;
}

function* insteadOfHead(head: string, script: Script): Generator<WireAction> {
  if (script.insteadOfHead === "garbage") yield "\u0001 garbage, not HTTP\n".repeat(64).slice(0, script.garbageBytes);
  if (script.insteadOfHead === "half-head") yield head.slice(0, head.length / 2);
  yield { cut: script.insteadOfHead === "reset" ? "reset" : "close" };
}

function* bodyActions({ pieces }: PlannedBody, script: Script, framing: Framing): Generator<WireAction> {
  const framed = framing === "chunked" ? chunk : (piece: string | Uint8Array) => [piece];
  let frame = 0;
  yield* actionsAfter(frame, script);
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
    else yield* splitActions(piece, script.splitBytes, framed);
    frame++;
    yield* actionsAfter(frame, script);
  }
}

function* actionsAfter(frame: number, { gaps, cut }: Script): Generator<WireAction> {
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

/** The pauses put each part into its own packet. */
function* splitActions(
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
