import type { Socket } from "bun";
import { createResponseReader } from "./response-reader.ts";

const lineFeed = 0x0a;
/** The usage is within this many bytes of the end of a response. */
const tailLength = 400;

export interface LoadEvents {
  firstByte(us: number): void;
  /** Between two parts of a stream. */
  gap(us: number): void;
  /** @param status 0 if the connection broke */
  end(connection: LoadConnection, status: number, us: number): void;
}

/** One keep-alive connection with one request at a time. */
export interface LoadConnection {
  /** @param dueAt start of the latency, from `performance.now()` */
  send(message: Uint8Array, dueAt: number): void;
  close(): void;
  /** Of the response that has just ended: its last bytes, and its number of line feeds, two for each event. */
  readonly tail: string;
  readonly lineFeeds: number;
}

export async function openConnection(port: number, streams: boolean, events: LoadEvents): Promise<LoadConnection> {
  let [dueAt, lastAt] = [0, 0];
  let [isBusy, isClosed] = [false, false];
  let unsent: Uint8Array | undefined;
  const body = createBodyReader(streams);

  const end = (status: number): void => {
    isBusy = false;
    events.end(connection, status, (performance.now() - dueAt) * 1000);
  };
  const feed = createResponseReader({ body: body.read, end });
  const flush = (socket: Socket): void => {
    if (unsent === undefined) return;
    const taken = socket.write(unsent);
    unsent = taken < unsent.length ? unsent.subarray(Math.max(0, taken)) : undefined;
  };
  const note = (): void => {
    const now = performance.now();
    if (lastAt === 0) events.firstByte((now - dueAt) * 1000);
    else if (streams) events.gap((now - lastAt) * 1000);
    lastAt = now;
  };
  const closed = (): void => {
    isClosed = true;
    if (isBusy) end(0);
  };

  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      data(_, bytes) {
        if (isBusy) note();
        feed(bytes);
      },
      drain: flush,
      close: closed,
      error: closed,
    },
  });
  const connection: LoadConnection = {
    send(message, at) {
      [dueAt, lastAt, isBusy] = [at, 0, true];
      body.reset();
      unsent = message;
      if (isClosed) end(0);
      else flush(socket);
    },
    close: () => socket.end(),
    get tail() {
      return body.tail();
    },
    get lineFeeds() {
      return body.lineFeeds();
    },
  };
  return connection;
}

interface BodyReader {
  reset(): void;
  read(bytes: Buffer): void;
  tail(): string;
  lineFeeds(): number;
}

/** Keeps the end of a body and, for streams, counts its line feeds. */
function createBodyReader(streams: boolean): BodyReader {
  let tail = "";
  let lineFeeds = 0;
  return {
    reset() {
      [tail, lineFeeds] = ["", 0];
    },
    read(bytes) {
      tail = bytes.length >= tailLength ? latin1Tail(bytes) : (tail + latin1Tail(bytes)).slice(-tailLength);
      if (streams) lineFeeds += countLineFeeds(bytes);
    },
    tail: () => tail,
    lineFeeds: () => lineFeeds,
  };
}

const latin1Tail = (bytes: Buffer): string =>
  bytes.toString("latin1", Math.max(0, bytes.length - tailLength), bytes.length);

function countLineFeeds(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(lineFeed); at !== -1; at = bytes.indexOf(lineFeed, at + 1)) count++;
  return count;
}
