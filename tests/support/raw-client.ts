import type { Socket } from "bun";
import { createChangeNotifier } from "./change-notifier.ts";
import { createMessageParser, findHeader, type Framing, type Header, NotHttp } from "./http-parser.ts";

/**
 * How a message ended. "complete": by its length, its last chunk or, without either, the end of the connection.
 * "truncated": the connection ended (FIN) before that. "reset": RST. "malformed": the bytes are not HTTP.
 */
export type MessageEnding = "complete" | "truncated" | "reset" | "malformed";

/** A client that sends bytes exactly as given and reports exactly what it received, including how it ended. */
export type RawClient = Awaited<ReturnType<typeof connectRaw>>;

export interface RawClientOptions {
  /** false: bodies are only counted, for those too large to keep. */
  keepBody?: boolean;
  /** For each wait. The default is far longer than a loaded machine needs. */
  deadlineMs?: number;
}

/** @param url only host and port are used */
export async function connectRaw(url: string | URL, { keepBody = true, deadlineMs = 20_000 }: RawClientOptions = {}) {
  const { host, hostname, port } = new URL(url);
  let lastMethod = "GET";
  let message = startMessage(keepBody, () => lastMethod);
  /** Bytes received after the current message. */
  let earlyBytes: Buffer = Buffer.alloc(0);
  let unsent = Buffer.alloc(0);
  /** How the other side ended the connection. */
  let ending: "fin" | "reset" | undefined;
  let isClosed = false;
  const { notify, waitFor } = createChangeNotifier(deadlineMs, () => message.describe());

  function receive(bytes: Buffer): void {
    if (message.ending() === undefined) earlyBytes = message.feed(bytes) ?? earlyBytes;
    else earlyBytes = Buffer.concat([earlyBytes, bytes]);
    notify();
  }
  function end(how: "fin" | "reset"): void {
    ending ??= how;
    message.endOfConnection(how);
    notify();
  }
  function flush(to: Socket): void {
    if (unsent.length > 0) unsent = unsent.subarray(Math.max(0, to.write(unsent)));
  }
  const socket = await Bun.connect({
    hostname,
    port: Number(port),
    allowHalfOpen: true,
    socket: {
      data: (_, bytes) => receive(bytes),
      drain: flush,
      end(ended) {
        end("fin");
        ended.end();
      },
      error() {},
      close(_, error) {
        isClosed = true;
        end(error === undefined ? "fin" : "reset");
      },
    },
  });
  const send = (bytes: string | Uint8Array): void => {
    unsent = Buffer.concat([unsent, Buffer.from(bytes as string)]);
    flush(socket);
  };
  const ended = (): Promise<MessageEnding> => waitFor("end of the message", () => message.ending());
  const body = async (): Promise<Buffer> => {
    await ended();
    return message.body();
  };
  const text = async (): Promise<string> => (await body()).toString();
  return {
    send,
    /** Sends a request with `Host`, the given headers and, if there is a body, `Content-Length`. */
    request(
      method: string,
      target: string,
      headers: Readonly<Record<string, string>> = {},
      sent: string | Uint8Array = "",
    ): void {
      lastMethod = method;
      const length = Buffer.byteLength(sent);
      const lines = [`${method} ${target} HTTP/1.1`, `Host: ${host}`];
      for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
      if (length > 0) lines.push(`Content-Length: ${length}`);
      send(`${lines.join("\r\n")}\r\n\r\n`);
      if (length > 0) send(sent);
    },
    /** The final head. @throws Error if the message ended without one */
    head: () => waitFor("head", () => message.findHead()),
    /** The 1xx heads received before it. */
    interim: (): readonly RawHead[] => message.interim,
    /** The next event of the stream with its empty line; undefined if the message ended. */
    nextEvent: async () => (await waitFor("event", () => message.findEventOrEnd())).text,
    /** Resolves with the body so far once it contains the text. @throws Error if the message ended without it */
    bodyContaining: (wanted: string) =>
      waitFor(`body with ${JSON.stringify(wanted)}`, () => message.findBodyContaining(wanted)),
    ended,
    /** The body without its chunk framing, after the message ended in any way. */
    body,
    text,
    json: async (): Promise<unknown> => JSON.parse(await text()),
    bodyBytes: () => message.bodyBytes(),
    /** This message's raw bytes; with `keepBody: false` only up to its head. */
    received: () => message.received(),
    /** Drops the finished message and begins to read the next one on the same connection. */
    nextResponse(): void {
      message = startMessage(keepBody, () => lastMethod);
      const bytes = earlyBytes;
      earlyBytes = Buffer.alloc(0);
      if (bytes.length > 0) receive(bytes);
      if (ending !== undefined) end(ending);
    },
    /** Stops reading, so that the kernel's buffers fill and the sender has to wait. */
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    /** Ends the sending side (FIN) and keeps reading. */
    halfClose: () => socket.shutdown(),
    close: () => socket.end(),
    /** Ends the connection with RST. */
    reset: () => socket.terminate(),
    /** Resolves once the connection is closed by either side. */
    closed: async () => void (await waitFor("closing", () => isClosed || undefined)),
  };
}

type RawHead = ReturnType<typeof parseHead>;

function parseHead(startLine: string, headers: readonly Header[]) {
  const [, version = "", status = "", reason = ""] = /^(HTTP\/1\.[01]) (\d{3}) ?(.*)$/.exec(startLine) ?? [];
  if (status === "") throw new NotHttp(`Not a status line: ${JSON.stringify(startLine)}`);
  return {
    version,
    status: Number(status),
    reason,
    /** In their original order and spelling. */
    headers,
    /** All values with that name, ignoring case. */
    all: (name: string) =>
      headers.filter(([given]) => given.toLowerCase() === name.toLowerCase()).map(([, value]) => value),
    header: (name: string) => findHeader(headers, name),
  };
}

function framingOf({ status, header }: RawHead, method: string): Framing | undefined {
  if (status < 200) return undefined;
  if (method === "HEAD" || status === 204 || status === 304) return 0;
  if (/\bchunked$/i.test(header("transfer-encoding") ?? "")) return "chunked";
  const length = header("content-length");
  return length === undefined ? "until-close" : Number(length);
}

/** The part of one response received so far. */
function startMessage(keepBody: boolean, method: () => string) {
  let head: RawHead | undefined;
  const interim: RawHead[] = [];
  const received: Buffer[] = [];
  let body: Buffer[] = [];
  let bodyBytes = 0;
  /** The position in the body of the next event. */
  let eventAt = 0;
  let ending: MessageEnding | undefined;
  const { feed, endOfConnection } = createMessageParser({
    head(startLine, headers) {
      const parsed = parseHead(startLine, headers);
      const framing = framingOf(parsed, method());
      if (framing === undefined) interim.push(parsed);
      else head = parsed;
      return framing;
    },
    body(bytes) {
      bodyBytes += bytes.length;
      if (keepBody) body.push(bytes);
    },
    end: () => (ending = "complete"),
  });
  const describe = (): string => JSON.stringify(Buffer.concat(received).toString().slice(0, 500));
  function takeEvent(): { text: string } | undefined {
    const bytes = Buffer.concat(body);
    body = [bytes];
    const ends = ["\n\n", "\r\n\r\n"].flatMap((mark) => {
      const at = bytes.indexOf(mark, eventAt);
      return at === -1 ? [] : [at + mark.length];
    });
    if (ends.length === 0) return undefined;
    const end = Math.min(...ends);
    const text = bytes.toString("utf8", eventAt, end);
    eventAt = end;
    return { text };
  }
  return {
    interim,
    ending: () => ending,
    body: () => Buffer.concat(body),
    bodyBytes: () => bodyBytes,
    received: () => Buffer.concat(received),
    describe,
    /** @returns undefined until the message ends, then the bytes that follow it */
    feed(bytes: Buffer): Buffer | undefined {
      if (keepBody || head === undefined) received.push(bytes);
      try {
        return feed(bytes);
      } catch {
        ending = "malformed";
        return undefined;
      }
    },
    endOfConnection(how: "fin" | "reset"): void {
      if (how === "reset") ending ??= "reset";
      else ending ??= endOfConnection() ? "complete" : "truncated";
    },
    findHead(): RawHead | undefined {
      if (head === undefined && ending !== undefined) throw new Error(`No head: ${ending}`);
      return head;
    },
    findBodyContaining(wanted: string): string | undefined {
      const soFar = Buffer.concat(body).toString();
      if (soFar.includes(wanted)) return soFar;
      if (ending !== undefined) throw new Error(`The message ended (${ending}): ${describe()}`);
      return undefined;
    },
    findEventOrEnd: (): { text: string | undefined } | undefined =>
      takeEvent() ?? (ending === undefined ? undefined : { text: undefined }),
  };
}
