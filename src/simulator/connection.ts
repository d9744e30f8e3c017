import type { Socket } from "bun";
import type { Answer } from "./answer.ts";
import { closesAfter, movesOf } from "./faults.ts";
import type { Pacer } from "./pacer.ts";
import { play } from "./play.ts";
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
  respond: (request: SimulatedRequest, script: Script) => Answer;
  started: (request: SimulatedRequest) => void;
  ended: (request: SimulatedRequest, how: EndingKind, answer: Answer | undefined) => void;
  emit: (event: SimulatorEvent) => void;
}

/** One connection: requests come in one after the other, each is answered before the next is looked at. */
export interface Connection {
  onData(bytes: Buffer): void;
  onDrain(): void;
  onClose(): void;
}

/** A request that is being received or answered. */
interface Exchange {
  request: IncomingRequest;
  script: Script;
  answer: Answer | undefined;
  isAnswering: boolean;
  stop: () => void;
}

export function createConnection(socket: Socket<unknown>, number: number, context: ConnectionContext): Connection {
  const wire = createWire(socket);
  let exchange: Exchange | undefined;
  /** What a client sent before its last request was answered. */
  let early: Buffer = Buffer.alloc(0);

  const newParser = () =>
    createRequestParser({
      head(head) {
        const request = createRequest(head, number, context.keepBytes(head));
        exchange = {
          request,
          script: context.scriptFor(request),
          answer: undefined,
          isAnswering: false,
          stop: () => {},
        };
        context.started(request);
        context.emit({ type: "head", at: request.receivedAt, connection: number, request });
        if (request.header("expect")?.toLowerCase() === "100-continue") wire.write("HTTP/1.1 100 Continue\r\n\r\n");
        pauseReading(socket, exchange.script.pauseBodyMs);
        if (exchange.script.earlyAnswer === true) answerExchange(exchange);
      },
      body: (bytes) => exchange?.request.receive(bytes),
      end() {
        if (exchange === undefined) return;
        const { request } = exchange;
        request.isComplete = true;
        context.emit({ type: "request", at: performance.now(), connection: number, request });
        if (!exchange.isAnswering) answerExchange(exchange);
      },
    });
  let feed = newParser();

  const answerExchange = (current: Exchange): void => {
    current.isAnswering = true;
    const handler = context.findHandler();
    if (handler === undefined) playAnswer(current);
    else void handle(handler, current);
  };
  const playAnswer = (current: Exchange): void => {
    const { request, script } = current;
    const answer = context.respond(request, script);
    const framesPerSecond = script.framesPerSecond ?? context.framesPerSecond;
    current.answer = answer;
    current.stop = play({
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
      onEnd: (how) => endExchange(current, how),
    });
  };
  const handle = async (handler: Handler, current: Exchange): Promise<void> => {
    await handler(current.request, wire);
    await wire.drained();
    endExchange(current, "finished");
  };
  const endExchange = (current: Exchange, how: EndingKind): void => {
    // Whichever of answer and close comes first ends it.
    if (exchange !== current) return;
    exchange = undefined;
    current.stop();
    const at = performance.now();
    context.ended(current.request, how, current.answer);
    context.emit({ type: how, at, connection: number, request: current.request });
    current.request.end({ how, at });
    if (how !== "finished") return;
    const { request, script } = current;
    // A body that is still coming cannot be told from the next request any more.
    if (!request.isComplete || !keepsAlive(request) || closesAfter(script)) wire.end();
    else readNext();
  };
  const readNext = (): void => {
    feed = newParser();
    const bytes = early;
    early = Buffer.alloc(0);
    if (bytes.length > 0) onData(bytes);
  };
  const onData = (bytes: Buffer): void => {
    if (exchange?.request.isComplete === true) {
      early = Buffer.concat([early, bytes]);
      return;
    }
    try {
      const rest = feed(bytes);
      if (rest !== undefined && rest.length > 0) onData(rest);
    } catch (error) {
      if (!(error instanceof MalformedRequest)) throw error;
      wire.write("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
      wire.end();
    }
  };
  context.emit({ type: "connected", at: performance.now(), connection: number });

  return {
    onData,
    onDrain: () => wire.onDrain(),
    onClose() {
      // Before the wire lets go those who wait for room: to them a closed connection looks like an empty one.
      if (exchange !== undefined) endExchange(exchange, howItClosed(wire));
      wire.onClose();
      context.emit({ type: "closed", at: performance.now(), connection: number });
    },
  };
}

/** A handler that closes the connection itself has finished; one that resets it has broken its answer off. */
function howItClosed({ endedHow }: SocketWire): EndingKind {
  if (endedHow === undefined) return "aborted";
  return endedHow === "reset" ? "broken" : "finished";
}

/** A whole body is sent when its last token is there. */
function generationMs({ body, usage }: Answer, framesPerSecond: number): number {
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
