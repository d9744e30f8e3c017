import {
  closeConnection,
  type Connection,
  type ConnectionContext,
  type Handler,
  openConnection,
  receiveBytes,
} from "./connection.ts";
import { metricsResponse } from "./dialects/metrics.ts";
import { parsesBody } from "./endpoints.ts";
import { defaultModel } from "./generation.ts";
import { createPacer } from "./pacer.ts";
import { createRecording } from "./recording.ts";
import type { SimulatedRequest } from "./request.ts";
import { parseScript, type Script, ScriptError } from "./script.ts";
import { type ScriptedModel, scriptedResponse } from "./scripted-response.ts";
import { createStats, type Stats } from "./stats.ts";

export interface SimulatorOptions extends Partial<ScriptedModel> {
  /** Default 0: any free port. */
  port?: number;
  /** Tokens per second of each response; a stream sends one frame per token. Default 0: as fast as the client reads. */
  framesPerSecond?: number;
  /** How many requests are kept for inspection. Default 1000; benchmarks keep none. */
  recordRequests?: number;
  /** How many bytes are kept of a body that no endpoint parses; the rest is counted and hashed. Default 1 MiB. */
  keepBodyBytes?: number;
}

export type Simulator = ReturnType<typeof startSimulator>;

/** A backend that responds like a real one and fails on demand: through `x-simulate` on a request, or `scriptNext`. */
export function startSimulator(options: SimulatorOptions = {}) {
  const { framesPerSecond = 0, recordRequests = 1000, keepBodyBytes = 1024 * 1024 } = options;
  const model = { ...defaultModel, isStrict: false, ...options };
  const stats = createStats();
  const pacer = createPacer();
  const { add, ...recorded } = createRecording(recordRequests);
  const scripts: Script[] = [];
  let handler: Handler | undefined;

  const { port, stop, connections } = listen(options.port ?? 0, {
    pacer,
    framesPerSecond,
    keepBytes: ({ target }) => (parsesBody(target.split("?", 1)[0] ?? "") ? Infinity : keepBodyBytes),
    scriptFor: (request) => ({ ...scripts.shift(), ...scriptInHeader(request) }),
    findHandler: () => handler,
    respond: (request, script) =>
      request.path === "/metrics"
        ? metricsResponse(processedBy(stats.read(), model.models))
        : scriptedResponse(request, script, model),
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
    /** Origin, without a trailing slash and without `/v1`. */
    url: `http://127.0.0.1:${port}`,
    /** How many connections are open now. */
    connections,
    stats: stats.read,
    /**
     * Queues a script for one of the next requests, in the order of the calls. A request's own `x-simulate` is added to it.
     * @throws ScriptError
     */
    scriptNext: (script: string) => void scripts.push(parseScript(script)),
    /** Passes each further request to the handler; undefined returns to the simulated model. */
    handle: (next: Handler | undefined) => void (handler = next),
    /** Cuts all connections and frees the port. */
    stop: stopAll,
    [Symbol.dispose]: stopAll,
  };
}

/** One for each model that is served, even if it processed nothing. */
const processedBy = ({ processedByModel }: Stats, models: readonly string[]) =>
  [...new Set([...models, ...Object.keys(processedByModel)])].map(
    (name) => [name, processedByModel[name] ?? { inputTokens: 0, outputTokens: 0 }] as const,
  );

function listen(wantedPort: number, context: ConnectionContext) {
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
      // `close` follows, also for a reset.
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
