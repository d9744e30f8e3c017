export type Header = readonly [name: string, value: string];

/** The bytes are not HTTP. */
export class NotHttp extends Error {
  override name = "NotHttp";
}

/** How a body ends (RFC 9112 section 6.3): after so many bytes, with its last chunk, or with the connection. */
export type Framing = number | "chunked" | "until-close";

export interface MessageEvents {
  /** @returns how the body is framed; undefined: another head follows. @throws NotHttp */
  head(startLine: string, headers: readonly Header[]): Framing | undefined;
  body(bytes: Buffer): void;
  end(): void;
}

/** Enough for the longest head that a test sends. Who sends more does not speak HTTP. */
const maxHeadBytes = 8 * 1024 * 1024;

type Step = "head" | "fixed" | "until-close" | "chunk-size" | "chunk" | "chunk-end" | "trailers" | "done";

interface State {
  readonly events: MessageEvents;
  step: Step;
  /** Received bytes that no step has consumed yet. */
  rest: Buffer;
  /** Bytes left of the fixed-length body or of the chunk. */
  remaining: number;
}

/** A strict push parser for one HTTP/1.1 message. It handles bytes only, no sockets. */
export function createMessageParser(events: MessageEvents) {
  const state: State = { events, step: "head", rest: Buffer.alloc(0), remaining: 0 };
  return {
    /**
     * @returns undefined until the message ends, then the bytes that follow it
     * @throws NotHttp
     */
    feed(bytes: Buffer): Buffer | undefined {
      state.rest = state.rest.length === 0 ? bytes : Buffer.concat([state.rest, bytes]);
      let stepEnded = true;
      while (stepEnded) stepEnded = steps[state.step](state);
      if (state.step !== "done") return undefined;
      events.end();
      return state.rest;
    },
    /** The connection ended, which ends a message without length or chunks. @returns whether the message is complete */
    endOfConnection(): boolean {
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
    const [startLine = "", ...lines] = text.split("\r\n");
    const framing = state.events.head(startLine, lines.map(parseHeader));
    if (framing === undefined) return true;
    if (typeof framing === "number") [state.step, state.remaining] = ["fixed", framing];
    else state.step = framing === "chunked" ? "chunk-size" : framing;
    return true;
  },
  fixed(state) {
    takeBody(state);
    if (state.remaining === 0) state.step = "done";
    return state.remaining === 0;
  },
  "until-close"(state) {
    state.remaining = Infinity;
    takeBody(state);
    return false;
  },
  "chunk-size"(state) {
    const line = takeUntil(state, "\r\n");
    if (line === undefined) return false;
    if (!/^[0-9a-f]{1,12}(?:;.*)?$/i.test(line)) throw new NotHttp(`Not a chunk size: ${JSON.stringify(line)}`);
    state.remaining = Number.parseInt(line, 16);
    state.step = state.remaining === 0 ? "trailers" : "chunk";
    return true;
  },
  chunk(state) {
    takeBody(state);
    if (state.remaining === 0) state.step = "chunk-end";
    return state.remaining === 0;
  },
  "chunk-end"(state) {
    if (state.rest.length < 2) return false;
    if (takeUntil(state, "\r\n") !== "") throw new NotHttp("A chunk is longer than its size");
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
  if (at === -1) {
    if (state.rest.length > maxHeadBytes) throw new NotHttp("A head or line is too long");
    return undefined;
  }
  const text = state.rest.toString("latin1", 0, at);
  state.rest = state.rest.subarray(at + mark.length);
  return text;
}

function takeBody(state: State): void {
  const bytes = state.rest.subarray(0, state.remaining);
  state.rest = state.rest.subarray(bytes.length);
  state.remaining -= bytes.length;
  if (bytes.length > 0) state.events.body(bytes);
}

function parseHeader(line: string): Header {
  const colon = line.indexOf(":");
  if (colon < 1) throw new NotHttp("A header has no name");
  return [line.slice(0, colon), line.slice(colon + 1).trim()];
}

/** The first header with that name, ignoring case. */
export const findHeader = (headers: readonly Header[], name: string): string | undefined =>
  headers.find(([given]) => given.toLowerCase() === name.toLowerCase())?.[1];
