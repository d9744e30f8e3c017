import type { Header } from "./simulated-response.ts";

export interface RequestHead {
  method: string;
  /** Copied from the request line, neither decoded nor normalised. */
  target: string;
  /** In their original order and spelling. */
  headers: readonly Header[];
}

export interface RequestEvents {
  head(head: RequestHead): void;
  body(bytes: Uint8Array): void;
  end(): void;
}

export class MalformedRequest extends Error {
  override name = "MalformedRequest";
}

/** Enough for the longest head that a test sends. A client that sends more does not speak HTTP. */
const maxHeadBytes = 8 * 1024 * 1024;
const endOfHead = Buffer.from("\r\n\r\n");
const endOfLine = Buffer.from("\r\n");

type Step = "head" | "fixed" | "chunk-size" | "chunk" | "trailers" | "done";

interface State {
  events: RequestEvents;
  step: Step;
  /** Received bytes that no step has consumed yet. */
  rest: Buffer;
  /** Bytes left of the fixed-length body, or of the chunk and its line end. */
  remaining: number;
}

/**
 * A push parser for one HTTP/1.1 request. It handles bytes only, no sockets.
 * @returns `feed`: takes bytes, returns undefined until the request ends and then the bytes that follow it
 * @throws MalformedRequest from `feed`
 */
export function createRequestParser(events: RequestEvents): (bytes: Buffer) => Buffer | undefined {
  const state: State = { events, step: "head", rest: Buffer.alloc(0), remaining: 0 };
  return (bytes) => {
    state.rest = state.rest.length === 0 ? bytes : Buffer.concat([state.rest, bytes]);
    let stepEnded = true;
    while (stepEnded) stepEnded = steps[state.step](state);
    if (state.step !== "done") return undefined;
    events.end();
    return state.rest;
  };
}

/** Each step returns whether it is complete; if not, it needs more bytes. */
const steps: Readonly<Record<Step, (state: State) => boolean>> = {
  head(state) {
    const text = takeUntil(state, endOfHead);
    if (text === undefined) return false;
    const head = parseHead(text);
    const framing = bodyFraming(head);
    state.events.head(head);
    state.step = framing === "chunked" ? "chunk-size" : "fixed";
    state.remaining = framing === "chunked" ? 0 : framing;
    return true;
  },
  fixed(state) {
    const bytes = state.rest.subarray(0, state.remaining);
    if (bytes.length > 0) state.events.body(bytes);
    skip(state, bytes.length);
    if (state.remaining === 0) state.step = "done";
    return state.remaining === 0;
  },
  "chunk-size"(state) {
    const line = takeUntil(state, endOfLine);
    if (line === undefined) return false;
    const size = /^[0-9a-f]{1,12}(?=$|;)/i.exec(line)?.[0];
    if (size === undefined) throw new MalformedRequest("A chunk has no size");
    state.remaining = Number.parseInt(size, 16) + endOfLine.length;
    state.step = state.remaining === endOfLine.length ? "trailers" : "chunk";
    return true;
  },
  chunk(state) {
    const data = state.rest.subarray(0, Math.max(0, state.remaining - endOfLine.length));
    if (data.length > 0) state.events.body(data);
    skip(state, Math.min(state.rest.length, state.remaining));
    if (state.remaining === 0) state.step = "chunk-size";
    return state.remaining === 0;
  },
  trailers(state) {
    const line = takeUntil(state, endOfLine);
    if (line === "") state.step = "done";
    return line !== undefined;
  },
  done: () => false,
};

function takeUntil(state: State, mark: Buffer): string | undefined {
  const at = state.rest.indexOf(mark);
  if (at === -1) {
    if (state.rest.length > maxHeadBytes) throw new MalformedRequest("A head or line is too long");
    return undefined;
  }
  const text = state.rest.toString("latin1", 0, at);
  state.rest = state.rest.subarray(at + mark.length);
  return text;
}

function skip(state: State, bytes: number): void {
  state.rest = state.rest.subarray(bytes);
  state.remaining -= bytes;
}

function parseHead(text: string): RequestHead {
  const [requestLine = "", ...lines] = text.split("\r\n");
  const [method = "", target = "", version = ""] = requestLine.split(" ");
  if (!/^HTTP\/1\.[01]$/.test(version)) throw new MalformedRequest("The request line is not HTTP/1");
  const headers = lines.map((line): Header => {
    const colon = line.indexOf(":");
    if (colon < 1) throw new MalformedRequest("A header has no name");
    return [line.slice(0, colon), line.slice(colon + 1).trim()];
  });
  return { method, target, headers };
}

function bodyFraming({ headers }: RequestHead): number | "chunked" {
  let length = 0;
  for (const [name, value] of headers) {
    const lowerName = name.toLowerCase();
    if (lowerName === "transfer-encoding" && /\bchunked$/i.test(value)) return "chunked";
    if (lowerName === "content-length") length = Number(value);
  }
  if (!Number.isSafeInteger(length) || length < 0) throw new MalformedRequest("The length is not a number");
  return length;
}
