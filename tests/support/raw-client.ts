import type { Socket } from "bun";
import { type ChangeNotifier, createChangeNotifier } from "./change-notifier.ts";
import {
  describeMessage,
  emptyMessage,
  findBodyContaining,
  findEventOrEnd,
  findHead,
  type Message,
  type MessageEnding,
  recordInto,
} from "./raw-message.ts";
import { createResponseParser, type RawHead, type ResponseParser } from "./response-parser.ts";

export type { MessageEnding } from "./raw-message.ts";

/** A client that sends bytes exactly as given and reports exactly what it received, including how it ended. */
export interface RawClient {
  send(bytes: string | Uint8Array): void;
  /** Sends a request with `Host`, the given headers and, if there is a body, `Content-Length`. */
  request(method: string, target: string, headers?: Readonly<Record<string, string>>, body?: string | Uint8Array): void;
  /** The final head. @throws Error if the message ended without one */
  head(): Promise<RawHead>;
  /** The 1xx heads received before it. */
  interim(): readonly RawHead[];
  /** The next event of the stream with its empty line; undefined if the message ended. */
  nextEvent(): Promise<string | undefined>;
  /** Resolves with the body so far once it contains the text. @throws Error if the message ended without it */
  bodyContaining(text: string): Promise<string>;
  ended(): Promise<MessageEnding>;
  /** The body without its chunk framing, after the message ended in any way. */
  body(): Promise<Buffer>;
  text(): Promise<string>;
  json(): Promise<unknown>;
  bodyBytes(): number;
  /** This message's raw bytes; with `keepBody: false` only up to its head. */
  received(): Buffer;
  /** Drops the finished message and begins to read the next one on the same connection. */
  nextResponse(): void;
  /** Stops reading, so that the kernel's buffers fill and the sender has to wait. */
  pause(): void;
  resume(): void;
  /** Ends the sending side (FIN) and keeps reading. */
  halfClose(): void;
  close(): void;
  /** Ends the connection with RST. */
  reset(): void;
  /** Resolves once the connection is closed by either side. */
  closed(): Promise<void>;
}

export interface RawClientOptions {
  /** false: bodies are only counted, for those too large to keep. */
  keepBody?: boolean;
  /** For each wait. The default is far longer than a loaded machine needs. */
  deadlineMs?: number;
}

/** @param url only host and port are used */
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
    ...messageMethods(connection),
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
    closed: async () => void (await connection.notifier.waitFor("closing", () => connection.isClosed || undefined)),
  };
}

interface RawConnection {
  message: Message;
  parser: ResponseParser;
  notifier: ChangeNotifier;
  keepBody: boolean;
  /** Bytes received after the current message. */
  earlyBytes: Buffer;
  unsent: Buffer;
  lastMethod: string;
  /** How the other side ended the connection. */
  ending: "fin" | "reset" | undefined;
  isClosed: boolean;
}

function createConnection({ keepBody = true, deadlineMs = 20_000 }: RawClientOptions): RawConnection {
  const message = emptyMessage();
  const connection: RawConnection = {
    message,
    parser: createResponseParser(recordInto(message, keepBody), () => connection.lastMethod),
    notifier: createChangeNotifier(deadlineMs, () => describeMessage(connection.message)),
    keepBody,
    earlyBytes: Buffer.alloc(0),
    unsent: Buffer.alloc(0),
    lastMethod: "GET",
    ending: undefined,
    isClosed: false,
  };
  return connection;
}

function nextMessage(connection: RawConnection): void {
  const { keepBody, earlyBytes, ending } = connection;
  connection.message = emptyMessage();
  connection.parser = createResponseParser(recordInto(connection.message, keepBody), () => connection.lastMethod);
  connection.earlyBytes = Buffer.alloc(0);
  if (earlyBytes.length > 0) receive(connection, earlyBytes);
  if (ending !== undefined) endConnection(connection, ending);
}

function receive(connection: RawConnection, bytes: Buffer): void {
  const { message, parser, keepBody } = connection;
  if (message.ending !== undefined) {
    connection.earlyBytes = Buffer.concat([connection.earlyBytes, bytes]);
    return;
  }
  if (keepBody || message.head === undefined) message.received.push(bytes);
  try {
    connection.earlyBytes = parser.feed(bytes) ?? connection.earlyBytes;
  } catch {
    message.ending = "malformed";
  }
  connection.notifier.notify();
}

function endConnection(connection: RawConnection, how: "fin" | "reset"): void {
  const { message, parser } = connection;
  connection.ending ??= how;
  if (how === "reset") message.ending ??= "reset";
  else message.ending ??= parser.endOfConnection() ? "complete" : "truncated";
  connection.notifier.notify();
}

function flush(connection: RawConnection, socket: Socket): void {
  const { unsent } = connection;
  if (unsent.length > 0) connection.unsent = unsent.subarray(Math.max(0, socket.write(unsent)));
}

type MessageMethod =
  | "head"
  | "interim"
  | "nextEvent"
  | "bodyContaining"
  | "ended"
  | "body"
  | "text"
  | "json"
  | "bodyBytes"
  | "received"
  | "nextResponse";

/** The methods about the current message. */
function messageMethods(connection: RawConnection): Pick<RawClient, MessageMethod> {
  const { waitFor } = connection.notifier;
  const ended = (): Promise<MessageEnding> => waitFor("end of the message", () => connection.message.ending);
  const body = async (): Promise<Buffer> => {
    await ended();
    return Buffer.concat(connection.message.body);
  };
  const text = async (): Promise<string> => (await body()).toString();
  return {
    head: () => waitFor("head", () => findHead(connection.message)),
    interim: () => connection.message.interim,
    nextEvent: async () => (await waitFor("event", () => findEventOrEnd(connection.message))).text,
    bodyContaining: (wanted) =>
      waitFor(`body with ${JSON.stringify(wanted)}`, () => findBodyContaining(connection.message, wanted)),
    ended,
    body,
    text,
    json: async () => JSON.parse(await text()),
    bodyBytes: () => connection.message.bodyBytes,
    received: () => Buffer.concat(connection.message.received),
    nextResponse: () => nextMessage(connection),
  };
}
