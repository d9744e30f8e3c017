export type RawHeader = readonly [name: string, value: string];

export interface RawHead {
  version: string;
  status: number;
  reason: string;
  /** In their original order and spelling. */
  headers: readonly RawHeader[];
  /** All values with that name, ignoring case. */
  all(name: string): string[];
  /** The first value. */
  header(name: string): string | undefined;
}

export interface ResponseEvents {
  head(head: RawHead): void;
  body(bytes: Buffer): void;
  end(): void;
}

export interface ResponseParser {
  /** @returns undefined until the message ends, then the bytes that follow it */
  feed(bytes: Buffer): Buffer | undefined;
  /** Call when the connection ended, which ends a message without length or chunks. @returns whether the message is complete */
  endOfConnection(): boolean;
}

type Step = "head" | "fixed" | "until-close" | "chunk-size" | "chunk" | "chunk-end" | "trailers" | "done";

interface State {
  readonly events: ResponseEvents;
  readonly requestMethod: () => string;
  step: Step;
  /** Received bytes that no step has consumed yet. */
  rest: Buffer;
  /** Bytes left of the fixed-length body or of the chunk. */
  remaining: number;
}

/** A strict push parser for one final HTTP/1.1 response and the interim ones before it. Throws on bytes that are not HTTP. */
export function createResponseParser(events: ResponseEvents, requestMethod: () => string): ResponseParser {
  const state: State = { events, requestMethod, step: "head", rest: Buffer.alloc(0), remaining: 0 };
  return {
    feed(bytes) {
      state.rest = state.rest.length === 0 ? bytes : Buffer.concat([state.rest, bytes]);
      let stepEnded = true;
      while (stepEnded) stepEnded = steps[state.step](state);
      if (state.step !== "done") return undefined;
      events.end();
      return state.rest;
    },
    endOfConnection() {
      if (state.step === "until-close") state.step = "done";
      return state.step === "done";
    },
  };
}

/** Each step returns whether it is complete; if not, it needs more bytes. */
const steps: Readonly<Record<Step, (state: State) => boolean>> = {
  head(state) {
    const text = takeUntil(state, "\r\n\r\n");
    if (text === undefined) return false;
    const head = parseHead(text);
    state.events.head(head);
    if (head.status < 200) return true;
    const framing = bodyFraming(head, state.requestMethod());
    state.step = typeof framing === "number" ? "fixed" : framing;
    state.remaining = typeof framing === "number" ? framing : 0;
    return true;
  },
  fixed(state) {
    state.remaining -= takeBody(state, state.remaining);
    if (state.remaining === 0) state.step = "done";
    return state.remaining === 0;
  },
  "until-close"(state) {
    takeBody(state, Infinity);
    return false;
  },
  "chunk-size"(state) {
    const line = takeUntil(state, "\r\n");
    if (line === undefined) return false;
    if (!/^[0-9a-f]+(;.*)?$/i.test(line)) throw new Error(`Not a chunk size: ${JSON.stringify(line)}`);
    state.remaining = Number.parseInt(line, 16);
    state.step = state.remaining === 0 ? "trailers" : "chunk";
    return true;
  },
  chunk(state) {
    state.remaining -= takeBody(state, state.remaining);
    if (state.remaining === 0) state.step = "chunk-end";
    return state.remaining === 0;
  },
  "chunk-end"(state) {
    if (state.rest.length < 2) return false;
    if (takeUntil(state, "\r\n") !== "") throw new Error("A chunk is longer than its size");
    state.step = "chunk-size";
    return true;
  },
  trailers(state) {
    const line = takeUntil(state, "\r\n");
    if (line === "") state.step = "done";
    return line !== undefined;
  },
  done: () => false,
};

function takeUntil(state: State, mark: string): string | undefined {
  const at = state.rest.indexOf(mark);
  if (at === -1) return undefined;
  const text = state.rest.toString("latin1", 0, at);
  state.rest = state.rest.subarray(at + mark.length);
  return text;
}

function takeBody(state: State, max: number): number {
  const bytes = state.rest.subarray(0, max);
  state.rest = state.rest.subarray(bytes.length);
  if (bytes.length > 0) state.events.body(bytes);
  return bytes.length;
}

function parseHead(text: string): RawHead {
  const [statusLine = "", ...lines] = text.split("\r\n");
  const [, version = "", status = "", reason = ""] = /^(HTTP\/1\.[01]) (\d{3}) ?(.*)$/.exec(statusLine) ?? [];
  if (status === "") throw new Error(`Not a status line: ${JSON.stringify(statusLine)}`);
  const headers = lines.map((line): RawHeader => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon), line.slice(colon + 1).trim()];
  });
  const all = (name: string) =>
    headers.filter(([given]) => given.toLowerCase() === name.toLowerCase()).map(([, value]) => value);
  return { version, status: Number(status), reason, headers, all, header: (name) => all(name)[0] };
}

/** RFC 9112 section 6.3. */
function bodyFraming(head: RawHead, method: string): number | "chunk-size" | "until-close" {
  if (method === "HEAD" || head.status === 204 || head.status === 304) return 0;
  if (/\bchunked$/i.test(head.header("transfer-encoding") ?? "")) return "chunk-size";
  const length = head.header("content-length");
  return length === undefined ? "until-close" : Number(length);
}
