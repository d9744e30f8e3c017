import {
  closeConnection,
  type Connection,
  type ConnectionContext,
  type Handler,
  openConnection,
  receiveBytes,
} from "./connection.ts";
import type { ModelOptions } from "./dialects/models.ts";
import { createPacer } from "./pacer.ts";
import { createRecording, type Recording } from "./recording.ts";
import { readsBody, respond } from "./respond.ts";
import type { SimulatedRequest } from "./request.ts";
import { parseScript, type Script, ScriptError } from "./script.ts";
import { createStats, type Stats } from "./stats.ts";

export interface SimulatorOptions extends Partial<ModelOptions> {
  /** 0, the default: a free one. */
  port?: number;
  /** Tokens per second of every answer; a stream sends a frame for each. 0, the default: as fast as the client reads. */
  framesPerSecond?: number;
  /** How many requests are kept to look at; benchmarks keep none. */
  recordRequests?: number;
  /** How much is held of a body that no endpoint parses. The rest is measured and hashed. */
  keepBodyBytes?: number;
}

/** A backend that answers like a real one and fails as it is told: `x-simulate` on a request, or `next`. */
export interface Simulator extends Omit<Recording, "add">, Disposable {
  port: number;
  /** Origin, without a trailing slash and without `/v1`. */
  url: string;
  stats: () => Stats;
  /**
   * Scripts for the requests to come, one each, in the order of calling. A request's own `x-simulate` comes on top.
   * @throws ScriptError
   */
  next: (script: string) => void;
  /** Answers every further request by hand; undefined goes back to the simulated model. */
  handle: (handler: Handler | undefined) => void;
  /** How many are open now. */
  connections: () => number;
  /** Cuts all connections and frees the port. */
  stop: () => void;
}

export function startSimulator(options: SimulatorOptions = {}): Simulator {
  const { framesPerSecond = 0, recordRequests = 1000, keepBodyBytes = 1024 * 1024 } = options;
  const model = modelOf(options);
  const stats = createStats();
  const pacer = createPacer();
  const { add, ...recorded } = createRecording(recordRequests);
  const scripts: Script[] = [];
  let handler: Handler | undefined;

  const { port, stop, connections } = listen(options.port ?? 0, {
    pacer,
    framesPerSecond,
    keepBytes: ({ target }) => (readsBody(target.split("?", 1)[0] ?? "") ? Infinity : keepBodyBytes),
    scriptFor: (request) => ({ ...scripts.shift(), ...scriptInHeader(request) }),
    findHandler: () => handler,
    respond: (request, script) => respond(request, script, model),
    started: stats.started,
    ended: stats.ended,
    emit: (event) => {
      if (recordRequests > 0) add(event);
    },
  });
  const stopAll = (): void => {
    pacer.close();
    stop();
  };
  return {
    ...recorded,
    port,
    url: `http://127.0.0.1:${port}`,
    connections,
    stats: stats.read,
    next: (script) => void scripts.push(parseScript(script)),
    handle: (next) => {
      handler = next;
    },
    stop: stopAll,
    [Symbol.dispose]: stopAll,
  };
}

function modelOf(options: SimulatorOptions): ModelOptions {
  return {
    models: options.models ?? [],
    defaultOutputTokens: options.defaultOutputTokens ?? 64,
    maxOutputTokens: options.maxOutputTokens ?? Infinity,
    maxModelLen: options.maxModelLen ?? 202_752,
  };
}

interface Listener {
  port: number;
  connections: () => number;
  stop: () => void;
}

function listen(wantedPort: number, context: ConnectionContext): Listener {
  let opened = 0;
  let closed = 0;
  const listener = Bun.listen<Connection | undefined>({
    hostname: "127.0.0.1",
    port: wantedPort,
    data: undefined,
    socket: {
      open(socket) {
        socket.data = openConnection(socket, ++opened, context);
      },
      data: (socket, bytes) => socket.data && receiveBytes(socket.data, bytes),
      drain: (socket) => socket.data?.wire.onDrain(),
      close(socket) {
        closed++;
        if (socket.data !== undefined) closeConnection(socket.data);
      },
      // A client that resets its connection closes it too; there is nothing more to say about it.
      error() {},
    },
  });
  return { port: listener.port, connections: () => opened - closed, stop: () => listener.stop(true) };
}

function scriptInHeader(request: SimulatedRequest): Script {
  try {
    return parseScript(request.header("x-simulate") ?? "");
  } catch (error) {
    if (error instanceof ScriptError) return { problem: error.message };
    throw error;
  }
}
