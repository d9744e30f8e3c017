import type { Socket } from "bun";
import type { Pacer } from "./pacer.ts";
import { closesAfter, planActions } from "./plan-actions.ts";
import type { SimulatorEvent } from "./recording.ts";
import { NotHttp } from "../http-parser.ts";
import { createRequestParser, type RequestHead } from "./request-parser.ts";
import { createRequest, type EndingKind, type IncomingRequest, type SimulatedRequest } from "./request.ts";
import { runActions } from "./run-actions.ts";
import type { Script } from "./script.ts";
import type { SimulatedResponse } from "./simulated-response.ts";
import { Wire } from "./wire.ts";

/** Writes the response itself, as raw bytes. If the wire is still open when it returns, the connection reads the next request. */
export type Handler = (request: SimulatedRequest, wire: Wire) => void | Promise<void>;

export interface ConnectionContext {
  pacer: Pacer;
  framesPerSecond: number;
  /** How many bytes of a body are kept. */
  keepBytes: (head: RequestHead) => number;
  /** Called once the head has arrived, because a script may change how the body is read. */
  scriptFor: (request: SimulatedRequest) => Script;
  findHandler: () => Handler | undefined;
  respond: (request: SimulatedRequest, script: Script) => SimulatedResponse;
  started: (request: SimulatedRequest) => void;
  ended: (request: SimulatedRequest, how: EndingKind, response: SimulatedResponse | undefined) => void;
  emit: (event: SimulatorEvent) => void;
}

/** One connection. It handles one request at a time: each gets its response before the next one is parsed. */
export interface Connection {
  readonly socket: Socket<unknown>;
  readonly number: number;
  readonly wire: Wire;
  readonly context: ConnectionContext;
  feed: (bytes: Buffer) => Buffer | undefined;
  inProgress: RequestInProgress | undefined;
  /** Bytes that arrived before the previous response was complete. */
  earlyBytes: Buffer;
}

/** A request from its head to the end of its response. */
interface RequestInProgress {
  request: IncomingRequest;
  script: Script;
  response: SimulatedResponse | undefined;
  hasBegunResponse: boolean;
  stop: () => void;
}

export function openConnection(socket: Socket<unknown>, number: number, context: ConnectionContext): Connection {
  context.emit({ type: "connected", at: performance.now(), connection: number });
  const connection: Connection = {
    socket,
    number,
    wire: new Wire(socket),
    context,
    feed: (bytes) => bytes,
    inProgress: undefined,
    earlyBytes: Buffer.alloc(0),
  };
  expectRequest(connection);
  return connection;
}

export function receiveBytes(connection: Connection, bytes: Buffer): void {
  if (connection.inProgress?.request.isComplete === true) {
    connection.earlyBytes = Buffer.concat([connection.earlyBytes, bytes]);
    return;
  }
  try {
    const rest = connection.feed(bytes);
    if (rest !== undefined && rest.length > 0) receiveBytes(connection, rest);
  } catch (error) {
    if (!(error instanceof NotHttp)) throw error;
    connection.wire.write("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    connection.wire.end();
  }
}

export function closeConnection(connection: Connection): void {
  const { inProgress, wire, context, number } = connection;
  // First, because `wire.onClose` wakes the waiting writers, which must find the request ended.
  if (inProgress !== undefined) endRequest(connection, inProgress, endingOfClosed(wire));
  wire.onClose();
  context.emit({ type: "closed", at: performance.now(), connection: number });
}

function expectRequest(connection: Connection): void {
  const { context, number } = connection;
  connection.feed = createRequestParser({
    head: (head) => beginRequest(connection, createRequest(head, number, context.keepBytes(head))),
    body: (bytes) => connection.inProgress?.request.receive(bytes),
    end() {
      const { inProgress } = connection;
      if (inProgress === undefined) return;
      inProgress.request.isComplete = true;
      context.emit({ type: "request", at: performance.now(), connection: number, request: inProgress.request });
      if (!inProgress.hasBegunResponse) beginResponse(connection, inProgress);
    },
  });
}

function beginRequest(connection: Connection, request: IncomingRequest): void {
  const { socket, wire, context, number } = connection;
  const script = context.scriptFor(request);
  const inProgress: RequestInProgress = {
    request,
    script,
    response: undefined,
    hasBegunResponse: false,
    stop: () => {},
  };
  connection.inProgress = inProgress;
  context.started(request);
  context.emit({ type: "head", at: request.receivedAt, connection: number, request });
  if (request.header("expect")?.toLowerCase() === "100-continue") wire.write("HTTP/1.1 100 Continue\r\n\r\n");
  pauseReading(socket, script.pauseBodyMs);
  if (script.earlyResponse === true) beginResponse(connection, inProgress);
}

function beginResponse(connection: Connection, inProgress: RequestInProgress): void {
  inProgress.hasBegunResponse = true;
  const handler = connection.context.findHandler();
  if (handler === undefined) runScript(connection, inProgress);
  else void runHandler(connection, inProgress, handler);
}

function runScript(connection: Connection, inProgress: RequestInProgress): void {
  const { wire, context } = connection;
  const { request, script } = inProgress;
  const response = context.respond(request, script);
  const framesPerSecond = script.framesPerSecond ?? context.framesPerSecond;
  inProgress.response = response;
  inProgress.stop = runActions({
    actions: planActions(response, script, {
      method: request.method,
      path: request.path,
      keepAlive: keepsAlive(request),
      generationMs: generationMs(response, framesPerSecond),
    }),
    wire,
    pacer: context.pacer,
    framesPerSecond,
    onTick: () => request.tokensSent++,
    onEnd: (how) => endRequest(connection, inProgress, how),
  });
}

async function runHandler(connection: Connection, inProgress: RequestInProgress, handler: Handler): Promise<void> {
  await handler(inProgress.request, connection.wire);
  await connection.wire.drained();
  endRequest(connection, inProgress, "finished");
}

function endRequest(connection: Connection, inProgress: RequestInProgress, how: EndingKind): void {
  // The end of the response and the close of the connection both come here; the first one wins.
  if (connection.inProgress !== inProgress) return;
  connection.inProgress = undefined;
  const { request, script, response } = inProgress;
  const at = performance.now();
  inProgress.stop();
  connection.context.ended(request, how, response);
  connection.context.emit({ type: how, at, connection: connection.number, request });
  request.end({ how, at });
  if (how !== "finished") return;
  // The rest of an unfinished body would be parsed as the next request.
  if (!request.isComplete || !keepsAlive(request) || closesAfter(script)) connection.wire.end();
  else readNext(connection);
}

function readNext(connection: Connection): void {
  expectRequest(connection);
  const bytes = connection.earlyBytes;
  connection.earlyBytes = Buffer.alloc(0);
  if (bytes.length > 0) receiveBytes(connection, bytes);
}

/** A handler that closes the connection has finished its response; one that resets it has broken it off. */
function endingOfClosed({ endedHow }: Wire): EndingKind {
  if (endedHow === undefined) return "aborted";
  return endedHow === "reset" ? "broken" : "finished";
}

/** How long the model takes for a response that is sent whole. */
function generationMs({ body, usage }: SimulatedResponse, framesPerSecond: number): number {
  return body === undefined || framesPerSecond === 0 ? 0 : ((usage?.outputTokens ?? 0) * 1000) / framesPerSecond;
}

function keepsAlive(request: SimulatedRequest): boolean {
  return request.header("connection")?.toLowerCase() !== "close";
}

/** Stops reading from the socket, like a backend with a busy upload handler. */
function pauseReading(socket: Socket<unknown>, pauseMs: number | undefined): void {
  if (pauseMs === undefined) return;
  socket.pause();
  if (Number.isFinite(pauseMs)) setTimeout(() => socket.resume(), pauseMs).unref();
}
