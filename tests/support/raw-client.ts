import type { Socket } from "bun";
import { createResponseParser, type RawHead } from "./response-parser.ts";

/**
 * How a message ended. "complete": by its length, its last chunk or, where neither says, the connection's end.
 * "truncated": the connection ended (FIN) before that. "reset": RST. "malformed": what came is not HTTP.
 */
export type MessageEnding = "complete" | "truncated" | "reset" | "malformed";

/** A client that tidies nothing up: bytes go out as given, and what comes back is told apart down to how it ended. */
export interface RawClient {
  send(bytes: string | Uint8Array): void;
  /** A request with `Host` and, where there is a body, its length. Further headers as given; they replace nothing. */
  request(method: string, target: string, headers?: Readonly<Record<string, string>>, body?: string | Uint8Array): void;
  /** The final head. @throws Error where the message ended without one */
  head(): Promise<RawHead>;
  /** The 1xx heads that came before it. */
  interim(): readonly RawHead[];
  /** The next event of the stream with its empty line; undefined where the message ended. */
  nextEvent(): Promise<string | undefined>;
  /** Resolves once the body so far holds the text. @throws Error where the message ended without it */
  bodyHolding(text: string): Promise<string>;
  ended(): Promise<MessageEnding>;
  /** The whole body without its chunk framing, once the message ended, however it did. */
  body(): Promise<Buffer>;
  text(): Promise<string>;
  json(): Promise<unknown>;
  bodyBytes(): number;
  /** Everything of this message as it came; nothing of its body with `keepBody: false`. */
  received(): Buffer;
  /** Forgets the message that ended and gets ready for the next one on the same connection. */
  next(): void;
  /** Reads no more: the kernel's buffers fill and the other side has to wait. */
  pause(): void;
  resume(): void;
  /** Says that nothing more will be sent, and goes on reading (FIN). */
  halfClose(): void;
  close(): void;
  /** Goes away without a word (RST). */
  reset(): void;
  /** Resolves once the connection is gone, whoever ended it. */
  closed(): Promise<void>;
}

export interface RawClientOptions {
  /** false: bodies are measured only, for those too large to hold. */
  keepBody?: boolean;
  /** For every wait; far longer than a loaded machine needs. */
  deadlineMs?: number;
}

/** @param url its host and port are connected to; the rest is ignored */
export async function connectRaw(url: string | URL, options: RawClientOptions = {}): Promise<RawClient> {
  const { host, hostname, port } = new URL(url);
  const { keepBody = true, deadlineMs = 20_000 } = options;
  let message = emptyMessage();
  let parser = createParser();
  let early: Buffer = Buffer.alloc(0);
  let lastMethod = "GET";
  let unsent: Buffer = Buffer.alloc(0);
  let connectionEnding: "fin" | "reset" | undefined;
  let isClosed = false;
  const watchers = new Set<() => void>();

  function createParser() {
    return createResponseParser(
      {
        head(head) {
          if (head.status < 200) message.interim.push(head);
          else message.head = head;
        },
        body(bytes) {
          message.bodyBytes += bytes.length;
          if (keepBody) message.body.push(bytes);
        },
        end() {
          message.ending = "complete";
        },
      },
      () => lastMethod,
    );
  }
  const changed = (): void => {
    for (const look of watchers) look();
  };
  /** What `look` finds, now or after one of the changes to come. */
  const when = <T>(what: string, look: () => T | undefined): Promise<T> =>
    new Promise((resolve, reject) => {
      const finish = (settle: () => void): void => {
        clearTimeout(timer);
        watchers.delete(attempt);
        settle();
      };
      const attempt = (): void => {
        try {
          const found = look();
          if (found !== undefined) finish(() => resolve(found));
        } catch (error) {
          finish(() => reject(error));
        }
      };
      const timer = setTimeout(
        () => finish(() => reject(new Error(`No ${what} within ${deadlineMs} ms; came so far: ${shown(message)}`))),
        deadlineMs,
      );
      watchers.add(attempt);
      attempt();
    });
  const receive = (bytes: Buffer): void => {
    if (message.ending !== undefined) {
      early = Buffer.concat([early, bytes]);
      return;
    }
    if (keepBody || message.head === undefined) message.received.push(bytes);
    try {
      early = parser.feed(bytes) ?? early;
    } catch {
      message.ending = "malformed";
    }
    changed();
  };
  const endConnection = (how: "fin" | "reset"): void => {
    connectionEnding ??= how;
    message.ending ??= parser.endOfConnection() && how === "fin" ? "complete" : how === "fin" ? "truncated" : "reset";
    changed();
  };
  const flush = (socket: Socket): void => {
    if (unsent.length > 0) unsent = unsent.subarray(Math.max(0, socket.write(unsent)));
  };

  const socket = await Bun.connect({
    hostname,
    port: Number(port),
    allowHalfOpen: true,
    socket: {
      data: (_, bytes) => receive(bytes),
      drain: flush,
      end(ended) {
        endConnection("fin");
        ended.end();
      },
      error() {},
      close(_, error) {
        isClosed = true;
        endConnection(error === undefined ? "fin" : "reset");
      },
    },
  });
  const send = (bytes: string | Uint8Array): void => {
    unsent = Buffer.concat([unsent, Buffer.from(bytes as string)]);
    flush(socket);
  };
  const ended = (): Promise<MessageEnding> => when("end of the message", () => message.ending);
  const body = async (): Promise<Buffer> => {
    await ended();
    return Buffer.concat(message.body);
  };
  const text = async (): Promise<string> => (await body()).toString();

  return {
    send,
    request(method, target, headers = {}, requestBody = "") {
      lastMethod = method;
      const length = Buffer.byteLength(requestBody);
      const lines = [`${method} ${target} HTTP/1.1`, `Host: ${host}`];
      for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
      if (length > 0) lines.push(`Content-Length: ${length}`);
      send(`${lines.join("\r\n")}\r\n\r\n`);
      if (length > 0) send(requestBody);
    },
    head: () =>
      when("head", () => {
        if (message.head === undefined && message.ending !== undefined) throw new Error(`No head: ${message.ending}`);
        return message.head;
      }),
    interim: () => message.interim,
    nextEvent: async () =>
      (
        await when(
          "event",
          () => takeEvent(message) ?? (message.ending === undefined ? undefined : { text: undefined }),
        )
      ).text,
    bodyHolding: (wanted) =>
      when(`body with ${JSON.stringify(wanted)}`, () => {
        const soFar = Buffer.concat(message.body).toString();
        if (soFar.includes(wanted)) return soFar;
        if (message.ending !== undefined) throw new Error(`The message ended (${message.ending}): ${shown(message)}`);
        return undefined;
      }),
    ended,
    body,
    text,
    json: async () => JSON.parse(await text()),
    bodyBytes: () => message.bodyBytes,
    received: () => Buffer.concat(message.received),
    next() {
      message = emptyMessage();
      parser = createParser();
      const bytes = early;
      early = Buffer.alloc(0);
      if (bytes.length > 0) receive(bytes);
      if (connectionEnding !== undefined) endConnection(connectionEnding);
    },
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    halfClose: () => socket.shutdown(),
    close: () => socket.end(),
    reset: () => socket.terminate(),
    closed: async () => void (await when("end of the connection", () => isClosed || undefined)),
  };
}

interface Message {
  head: RawHead | undefined;
  interim: RawHead[];
  body: Buffer[];
  bodyBytes: number;
  /** Where in the body the next event begins. */
  eventAt: number;
  received: Buffer[];
  ending: MessageEnding | undefined;
}

function emptyMessage(): Message {
  return { head: undefined, interim: [], body: [], bodyBytes: 0, eventAt: 0, received: [], ending: undefined };
}

function takeEvent(message: Message): { text: string } | undefined {
  const bytes = message.body.length > 1 ? Buffer.concat(message.body) : (message.body[0] ?? Buffer.alloc(0));
  message.body = [bytes];
  const rest = bytes.subarray(message.eventAt);
  const [, event] = /^((?:.|\r?\n(?!\r?\n))*\r?\n\r?\n)/.exec(rest.toString("latin1")) ?? [];
  if (event === undefined) return undefined;
  message.eventAt += event.length;
  return { text: Buffer.from(event, "latin1").toString() };
}

function shown(message: Message): string {
  return JSON.stringify(Buffer.concat(message.received).toString().slice(0, 500));
}
