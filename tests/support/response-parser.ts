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

/** A strict push parser for one final HTTP/1.1 response and the interim ones before it. Throws on bytes that are not HTTP. */
export function createResponseParser(events: ResponseEvents, requestMethod: () => string): ResponseParser {
  let rest: Buffer = Buffer.alloc(0);
  let step: Step = "head";
  let remaining = 0;

  const takeUntil = (mark: string): string | undefined => {
    const at = rest.indexOf(mark);
    if (at === -1) return undefined;
    const text = rest.toString("latin1", 0, at);
    rest = rest.subarray(at + mark.length);
    return text;
  };
  const takeBody = (max: number): number => {
    const bytes = rest.subarray(0, max);
    rest = rest.subarray(bytes.length);
    if (bytes.length > 0) events.body(bytes);
    return bytes.length;
  };

  /** Each step returns whether it is complete; if not, it needs more bytes. */
  const steps: Record<Step, () => boolean> = {
    head() {
      const text = takeUntil("\r\n\r\n");
      if (text === undefined) return false;
      const head = parseHead(text);
      events.head(head);
      if (head.status < 200) return true;
      const framing = bodyFraming(head, requestMethod());
      step = typeof framing === "number" ? "fixed" : framing;
      remaining = typeof framing === "number" ? framing : 0;
      return true;
    },
    fixed() {
      remaining -= takeBody(remaining);
      if (remaining === 0) step = "done";
      return remaining === 0;
    },
    "until-close"() {
      takeBody(Infinity);
      return false;
    },
    "chunk-size"() {
      const line = takeUntil("\r\n");
      if (line === undefined) return false;
      if (!/^[0-9a-f]+(;.*)?$/i.test(line)) throw new Error(`Not a chunk size: ${JSON.stringify(line)}`);
      remaining = Number.parseInt(line, 16);
      step = remaining === 0 ? "trailers" : "chunk";
      return true;
    },
    chunk() {
      remaining -= takeBody(remaining);
      if (remaining === 0) step = "chunk-end";
      return remaining === 0;
    },
    "chunk-end"() {
      if (rest.length < 2) return false;
      if (takeUntil("\r\n") !== "") throw new Error("A chunk is longer than its size");
      step = "chunk-size";
      return true;
    },
    trailers() {
      const line = takeUntil("\r\n");
      if (line === "") step = "done";
      return line !== undefined;
    },
    done: () => false,
  };

  return {
    feed(bytes) {
      rest = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
      let stepEnded = true;
      while (stepEnded) stepEnded = steps[step]();
      if (step !== "done") return undefined;
      events.end();
      return rest;
    },
    endOfConnection() {
      if (step === "until-close") step = "done";
      return step === "done";
    },
  };
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
