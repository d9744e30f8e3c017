import type { Socket } from "bun";
import type { SimulatedResponse } from "./answer.ts";
import { closesAfter, movesOf } from "./faults.ts";
import type { Pacer } from "./pacer.ts";
import { play } from "./run-actions.ts";
import type { EndingKind, SimulatorEvent } from "./recording.ts";
import { createRequest, type IncomingRequest, type SimulatedRequest } from "./request.ts";
import { createRequestParser, MalformedRequest, type RequestHead } from "./request-parser.ts";
import type { Script } from "./script.ts";
import { createWire, type SocketWire, type Wire } from "./wire.ts";

/** Writes the answer itself, byte by byte. Where the wire is still open when it returns, the connection goes on to the next request. */
export type Handler = (request: SimulatedRequest, wire: Wire) => void | Promise<void>;

export interface ConnectionContext {
  pacer: Pacer;
  framesPerSecond: number;
  /** How much of a body is held. */
  keepBytes: (head: RequestHead) => number;
  /** Decided when the head is there, since a script may say what to do with the body. */
  scriptFor: (request: SimulatedRequest) => Script;
  findHandler: () => Handler | undefined;
  respond: (request: SimulatedRequest, script: Script) => SimulatedResponse;
  started: (request: SimulatedRequest) => void;
  ended: (request: SimulatedRequest, how: EndingKind, answer: SimulatedResponse | undefined) => void;
  emit: (event: SimulatorEvent) => void;
}

/** One connection: requests come in one after the other, each is answered before the next is looked at. */
export interface Connection {
  readonly socket: Socket<unknown>;
  readonly number: number;
  readonly wire: SocketWire;
  readonly context: ConnectionContext;
  feed: (bytes: Buffer) => Buffer | undefined;
  exchange: RequestInProgress | undefined;
  /** What the client sent before its last request was answered. */
  early: Buffer;
}

/** A request that is being received or answered. */
interface RequestInProgress {
  request: IncomingRequest;
  script: Script;
  answer: SimulatedResponse | undefined;
  isAnswering: boolean;
  stop: () => void;
}

export function openConnection(socket: Socket<unknown>, number: number, context: ConnectionContext): Connection {
  context.emit({ type: "connected", at: performance.now(), connection: number });
  const connection: Connection = {
    socket,
    number,
    wire: createWire(socket),
    context,
    feed: (bytes) => bytes,
    exchange: undefined,
    early: Buffer.alloc(0),
  };
  expectRequest(connection);
  return connection;
}

export function receiveBytes(connection: Connection, bytes: Buffer): void {
  if (connection.exchange?.request.isComplete === true) {
    connection.early = Buffer.concat([connection.early, bytes]);
    return;
  }
  try {
    const rest = connection.feed(bytes);
    if (rest !== undefined && rest.length > 0) receiveBytes(connection, rest);
  } catch (error) {
    if (!(error instanceof MalformedRequest)) throw error;
    connection.wire.write("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    connection.wire.end();
  }
}

export function closeConnection(connection: Connection): void {
  const { exchange, wire, context, number } = connection;
  // Before the wire lets go those who wait for room: to them a closed connection looks like an empty one.
  if (exchange !== undefined) endExchange(connection, exchange, howItClosed(wire));
  wire.onClose();
  context.emit({ type: "closed", at: performance.now(), connection: number });
}

function expectRequest(connection: Connection): void {
  const { context, number } = connection;
  connection.feed = createRequestParser({
    head: (head) => beginExchange(connection, createRequest(head, number, context.keepBytes(head))),
    body: (bytes) => connection.exchange?.request.receive(bytes),
    end() {
      const { exchange } = connection;
      if (exchange === undefined) return;
      exchange.request.isComplete = true;
      context.emit({ type: "request", at: performance.now(), connection: number, request: exchange.request });
      if (!exchange.isAnswering) answerExchange(connection, exchange);
    },
  });
}

function beginExchange(connection: Connection, request: IncomingRequest): void {
  const { socket, wire, context, number } = connection;
  const script = context.scriptFor(request);
  const exchange: RequestInProgress = { request, script, answer: undefined, isAnswering: false, stop: () => {} };
  connection.exchange = exchange;
  context.started(request);
  context.emit({ type: "head", at: request.receivedAt, connection: number, request });
  if (request.header("expect")?.toLowerCase() === "100-continue") wire.write("HTTP/1.1 100 Continue\r\n\r\n");
  pauseReading(socket, script.pauseBodyMs);
  if (script.earlyAnswer === true) answerExchange(connection, exchange);
}

function answerExchange(connection: Connection, exchange: RequestInProgress): void {
  exchange.isAnswering = true;
  const handler = connection.context.findHandler();
  if (handler === undefined) playAnswer(connection, exchange);
  else void answerByHand(connection, exchange, handler);
}

function playAnswer(connection: Connection, exchange: RequestInProgress): void {
  const { wire, context } = connection;
  const { request, script } = exchange;
  const answer = context.respond(request, script);
  const framesPerSecond = script.framesPerSecond ?? context.framesPerSecond;
  exchange.answer = answer;
  exchange.stop = play({
    moves: movesOf(answer, script, {
      method: request.method,
      path: request.path,
      keepAlive: keepsAlive(request),
      generationMs: generationMs(answer, framesPerSecond),
    }),
    wire,
    pacer: context.pacer,
    framesPerSecond,
    onBeat: () => request.tokensSent++,
    onEnd: (how) => endExchange(connection, exchange, how),
  });
}

async function answerByHand(connection: Connection, exchange: RequestInProgress, handler: Handler): Promise<void> {
  await handler(exchange.request, connection.wire);
  await connection.wire.drained();
  endExchange(connection, exchange, "finished");
}

function endExchange(connection: Connection, exchange: RequestInProgress, how: EndingKind): void {
  // Whichever of answer and close comes first ends it.
  if (connection.exchange !== exchange) return;
  connection.exchange = undefined;
  const { request, script, answer } = exchange;
  const at = performance.now();
  exchange.stop();
  connection.context.ended(request, how, answer);
  connection.context.emit({ type: how, at, connection: connection.number, request });
  request.end({ how, at });
  if (how !== "finished") return;
  // A body that is still coming cannot be told from the next request any more.
  if (!request.isComplete || !keepsAlive(request) || closesAfter(script)) connection.wire.end();
  else readNext(connection);
}

function readNext(connection: Connection): void {
  expectRequest(connection);
  const bytes = connection.early;
  connection.early = Buffer.alloc(0);
  if (bytes.length > 0) receiveBytes(connection, bytes);
}

/** A handler that closes the connection itself has finished; one that resets it has broken its answer off. */
function howItClosed({ endedHow }: SocketWire): EndingKind {
  if (endedHow === undefined) return "aborted";
  return endedHow === "reset" ? "broken" : "finished";
}

/** A whole body is sent when its last token is there. */
function generationMs({ body, usage }: SimulatedResponse, framesPerSecond: number): number {
  return body === undefined || framesPerSecond === 0 ? 0 : ((usage?.outputTokens ?? 0) * 1000) / framesPerSecond;
}

function keepsAlive(request: SimulatedRequest): boolean {
  return request.header("connection")?.toLowerCase() !== "close";
}

/** Stops taking bytes off the socket, as a backend does whose upload handler is busy. */
function pauseReading(socket: Socket<unknown>, pauseMs: number | undefined): void {
  if (pauseMs === undefined) return;
  socket.pause();
  if (Number.isFinite(pauseMs)) setTimeout(() => socket.resume(), pauseMs).unref();
}
