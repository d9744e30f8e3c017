import type { Socket } from "bun";
import { type Changes, createChanges } from "./changes.ts";
import {
  bodyHolding,
  emptyMessage,
  eventOrEnd,
  fill,
  headOf,
  type Message,
  type MessageEnding,
  shown,
} from "./raw-message.ts";
import { createResponseParser, type RawHead, type ResponseParser } from "./response-parser.ts";

export type { MessageEnding } from "./raw-message.ts";

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
  const connection = createConnection(options);
  const socket = await Bun.connect({
    hostname,
    port: Number(port),
    allowHalfOpen: true,
    socket: {
      data: (_, bytes) => receive(connection, bytes),
      drain: (drained) => flush(connection, drained),
      end(ended) {
        endConnection(connection, "fin");
        ended.end();
      },
      error() {},
      close(_, error) {
        connection.isClosed = true;
        endConnection(connection, error === undefined ? "fin" : "reset");
      },
    },
  });
  const send = (bytes: string | Uint8Array): void => {
    connection.unsent = Buffer.concat([connection.unsent, Buffer.from(bytes as string)]);
    flush(connection, socket);
  };
  return {
    ...reading(connection),
    send,
    request(method, target, headers = {}, body = "") {
      connection.lastMethod = method;
      const length = Buffer.byteLength(body);
      const lines = [`${method} ${target} HTTP/1.1`, `Host: ${host}`];
      for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
      if (length > 0) lines.push(`Content-Length: ${length}`);
      send(`${lines.join("\r\n")}\r\n\r\n`);
      if (length > 0) send(body);
    },
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    halfClose: () => socket.shutdown(),
    close: () => socket.end(),
    reset: () => socket.terminate(),
    closed: async () => void (await connection.changes.when("closing", () => connection.isClosed || undefined)),
  };
}

interface RawConnection {
  message: Message;
  parser: ResponseParser;
  changes: Changes;
  keepBody: boolean;
  /** What came behind the message that is being looked at. */
  early: Buffer;
  unsent: Buffer;
  lastMethod: string;
  /** How the other side ended it. */
  ending: "fin" | "reset" | undefined;
  isClosed: boolean;
}

function createConnection({ keepBody = true, deadlineMs = 20_000 }: RawClientOptions): RawConnection {
  const message = emptyMessage();
  const connection: RawConnection = {
    message,
    parser: createResponseParser(fill(message, keepBody), () => connection.lastMethod),
    changes: createChanges(deadlineMs, () => shown(connection.message)),
    keepBody,
    early: Buffer.alloc(0),
    unsent: Buffer.alloc(0),
    lastMethod: "GET",
    ending: undefined,
    isClosed: false,
  };
  return connection;
}

function nextMessage(connection: RawConnection): void {
  const { keepBody, early, ending } = connection;
  connection.message = emptyMessage();
  connection.parser = createResponseParser(fill(connection.message, keepBody), () => connection.lastMethod);
  connection.early = Buffer.alloc(0);
  if (early.length > 0) receive(connection, early);
  if (ending !== undefined) endConnection(connection, ending);
}

function receive(connection: RawConnection, bytes: Buffer): void {
  const { message, parser, keepBody } = connection;
  if (message.ending !== undefined) {
    connection.early = Buffer.concat([connection.early, bytes]);
    return;
  }
  if (keepBody || message.head === undefined) message.received.push(bytes);
  try {
    connection.early = parser.feed(bytes) ?? connection.early;
  } catch {
    message.ending = "malformed";
  }
  connection.changes.announce();
}

function endConnection(connection: RawConnection, how: "fin" | "reset"): void {
  const { message, parser } = connection;
  connection.ending ??= how;
  if (how === "reset") message.ending ??= "reset";
  else message.ending ??= parser.endOfConnection() ? "complete" : "truncated";
  connection.changes.announce();
}

function flush(connection: RawConnection, socket: Socket): void {
  const { unsent } = connection;
  if (unsent.length > 0) connection.unsent = unsent.subarray(Math.max(0, socket.write(unsent)));
}

type Reading =
  | "head"
  | "interim"
  | "nextEvent"
  | "bodyHolding"
  | "ended"
  | "body"
  | "text"
  | "json"
  | "bodyBytes"
  | "received"
  | "next";

/** What the client tells about the message that is being looked at. */
function reading(connection: RawConnection): Pick<RawClient, Reading> {
  const { when } = connection.changes;
  const ended = (): Promise<MessageEnding> => when("end of the message", () => connection.message.ending);
  const body = async (): Promise<Buffer> => {
    await ended();
    return Buffer.concat(connection.message.body);
  };
  const text = async (): Promise<string> => (await body()).toString();
  return {
    head: () => when("head", () => headOf(connection.message)),
    interim: () => connection.message.interim,
    nextEvent: async () => (await when("event", () => eventOrEnd(connection.message))).text,
    bodyHolding: (wanted) => when(`body with ${JSON.stringify(wanted)}`, () => bodyHolding(connection.message, wanted)),
    ended,
    body,
    text,
    json: async () => JSON.parse(await text()),
    bodyBytes: () => connection.message.bodyBytes,
    received: () => Buffer.concat(connection.message.received),
    next: () => nextMessage(connection),
  };
}
