import type { Handler } from "./simulator/connection.ts";
import type { SimulatedRequest } from "./simulator/request.ts";
import { type Simulator, startSimulator } from "./simulator/simulator.ts";

/** What an engine does with a request that it gets; `gone`: something before it cuts every connection. */
export type Behaviour = "works" | "hangs" | "resets" | "breaks" | "gone" | number;

export type Engine = ReturnType<typeof startEngine>;

/** The tokens that each response reports, streams too. */
export const tokens = { input: 3, output: 2 };

const usage = { prompt_tokens: tokens.input, completion_tokens: tokens.output };
const whole = JSON.stringify({ choices: [{ message: { content: "ok" } }], usage });
const streamed = [{ choices: [{ index: 0, delta: { content: "ok" } }] }, { choices: [], usage }, "[DONE]"]
  .map((data) => `data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`)
  .join("");

function headOf(status: number, length: number, type = "application/json"): string {
  return `HTTP/1.1 ${status} Status\r\ncontent-type: ${type}\r\ncontent-length: ${length}\r\n\r\n`;
}

function responseTo(request: SimulatedRequest): { head: string; body: string } {
  const asked = request.json() as { stream?: boolean } | undefined;
  const [body, type] = asked?.stream === true ? [streamed, "text/event-stream"] : [whole, undefined];
  return { head: headOf(200, body.length, type), body };
}

/** How long it takes for each request that it works on: others come meanwhile. */
const workMs = 3;

/** A backend that counts how often it executes each request, and that can go away and come back at its address. */
export function startEngine(name: string) {
  const executions = new Map<string, number>();
  const failed: string[] = [];
  let behaves: Behaviour = "works";
  const begin = (port: number): Simulator => {
    const simulator = startSimulator({ port });
    simulator.handle(handler);
    return simulator;
  };

  const handler: Handler = async (request, wire) => {
    const how = behaves;
    const status = typeof how === "number" ? how : 200;
    if (how === "gone") {
      if (request.method !== "GET") failed.push(request.header("x-request-id") ?? "");
      return wire.reset();
    }
    // Probes are no work.
    if (request.method === "GET") return void wire.write(headOf(status === 503 ? 503 : 200, 2) + "{}");
    const id = request.header("x-request-id") ?? "";
    if (status !== 429 && status !== 503) executions.set(id, (executions.get(id) ?? 0) + 1);
    if (how === "works") await Bun.sleep(workMs);
    if (how !== "works" || wire.isClosed) failed.push(id);
    if (how === "resets") return wire.reset();
    if (how === "hangs") return new Promise(() => {});
    const { head, body } = responseTo(request);
    if (how === "breaks") {
      wire.write(head + body.slice(0, body.length / 2));
      return wire.end();
    }
    wire.write(status === 200 ? head + body : `${headOf(status, 2)}{}`);
  };

  const { url, port, ...begun } = begin(0);
  let simulator: Pick<Simulator, "stop"> | undefined = begun;
  const goAway = (): void => {
    simulator?.stop();
    simulator = undefined;
  };
  return {
    name,
    url,
    /** How often each request was executed, by its id. A refusal executes nothing. */
    executions,
    /** The requests that it refused, or executed and did not respond to with 200. */
    failed,
    get behaves(): Behaviour {
      return behaves;
    },
    set behaves(how) {
      behaves = how;
    },
    /** Those that were cut off while they were executed are among the failed ones. */
    goAway,
    comeBack: () => void (simulator ??= begin(port)),
    [Symbol.dispose]: goAway,
  };
}
