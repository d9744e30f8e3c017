import { describe, expect, test } from "bun:test";
import type { Engine, Engines } from "../../../src/domain/backends.ts";
import { createEngines, findEngine } from "../../../src/proxy/upstream/engine.ts";

type Pages = Record<string, string>;

/** A server with these pages, and 404 for any other. */
function serve(pages: Pages, headers: Record<string, string> = {}) {
  return Bun.serve({
    port: 0,
    fetch(request) {
      const page = pages[new URL(request.url).pathname];
      return new Response(page ?? "{}", { status: page === undefined ? 404 : 200, headers });
    },
  });
}

const metrics = (name: string): string =>
  `# TYPE python_gc counter\npython_gc 1\n# HELP ${name} Running.\n# TYPE ${name} gauge\n${name}{model="m"} 1.0\n`;

test.each<[Pages, Record<string, string>, Engine | undefined]>([
  [{ "/metrics": metrics("vllm:num_requests_running") }, { server: "uvicorn" }, "vllm"],
  [
    { "/metrics": metrics("sglang:num_running_reqs"), "/version": '{"version":"0.5"}' },
    { server: "uvicorn" },
    "sglang",
  ],
  [{ "/metrics": metrics("llamacpp:requests_processing") }, {}, "llama.cpp"],
  [{}, { server: "llama.cpp" }, "llama.cpp"],
  [{ "/version": '{"version":"0.14.1"}' }, { server: "uvicorn" }, "vllm"],
  [{ "/api/version": '{"version":"0.13.5"}' }, {}, "ollama"],
  [{ "/metrics": metrics("http_requests_total"), "/version": "<html>" }, { server: "nginx" }, undefined],
])("what a backend serves tells its engine: %j, %j: %p", async (pages, headers, engine) => {
  await using server = serve(pages, headers);
  expect(await findEngine({ baseUrl: server.url.origin, apiKey: undefined }, AbortSignal.timeout(5000))).toBe(engine);
});

describe("the engines of backends", () => {
  const upstream = (name: string) => ({ name, baseUrl: `http://${name}.example`, apiKey: undefined });

  /** The answers are those of the next calls. */
  function enginesWith(answers: (Engine | Error | undefined)[]): {
    engines: Engines;
    asked: string[];
    clock: { now: number };
  } {
    const asked: string[] = [];
    const clock = { now: 0 };
    const engines = createEngines({
      backends: () => [upstream("a"), upstream("b")],
      async find({ baseUrl }) {
        asked.push(baseUrl);
        const answer = answers.shift();
        if (answer instanceof Error) throw answer;
        return answer;
      },
      monotonic: () => clock.now,
    });
    return { engines, asked, clock };
  }

  test("are asked for once at first, and only those of the candidates count", async () => {
    const { engines, asked } = enginesWith(["vllm", "ollama"]);
    expect(engines.enginesOf(["a"])).toEqual([]);
    await Promise.all([engines.learn(), engines.learn()]);
    await engines.learn();
    expect(asked).toEqual(["http://a.example", "http://b.example"]);
    expect(engines.enginesOf(["b"])).toEqual(["ollama"]);
    expect(engines.enginesOf(["a", "b", "c"])).toEqual(["vllm", "ollama"]);
  });

  test("are asked for again after minutes, and sooner where they are unknown", async () => {
    const { engines, asked, clock } = enginesWith(["vllm", new Error("away"), "ollama", "sglang"]);
    await engines.learn();
    clock.now = 29_999;
    await engines.learn();
    expect(asked).toHaveLength(2);
    clock.now = 30_000;
    await engines.learn();
    expect(asked.slice(2)).toEqual(["http://b.example"]);
    clock.now = 300_000;
    await engines.learn();
    expect(asked.slice(3)).toEqual(["http://a.example"]);
    await Bun.sleep(0);
    expect(engines.enginesOf(["a", "b"])).toEqual(["sglang", "ollama"]);
  });

  test("stay known while a backend is away", async () => {
    const { engines, clock } = enginesWith(["vllm", "ollama", new Error("away"), undefined]);
    await engines.learn();
    clock.now = 300_000;
    await engines.learn();
    await Bun.sleep(0);
    expect(engines.enginesOf(["a", "b"])).toEqual(["vllm", "ollama"]);
  });
});
