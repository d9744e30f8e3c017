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
    out: Set<string>;
    clock: { now: number };
  } {
    const asked: string[] = [];
    const clock = { now: 0 };
    const out = new Set<string>();
    const engines = createEngines({
      backends: () => [upstream("a"), upstream("b")],
      isIn: (name) => !out.has(name),
      async find({ baseUrl }) {
        asked.push(baseUrl);
        const answer = answers.shift();
        if (answer instanceof Error) throw answer;
        return answer;
      },
      monotonic: () => clock.now,
    });
    return { engines, asked, out, clock };
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
    const { engines, asked, clock } = enginesWith(["vllm", new Error("away"), undefined, "ollama", "sglang"]);
    const askedAt = async (now: number) => {
      const before = asked.length;
      clock.now = now;
      await engines.learn();
      await Bun.sleep(0);
      return asked.slice(before);
    };
    await engines.learn();
    expect(await askedAt(1_999)).toEqual([]);
    expect(await askedAt(2_000)).toEqual(["http://b.example"]);
    expect(await askedAt(31_999)).toEqual([]);
    expect(await askedAt(32_000)).toEqual(["http://b.example"]);
    expect(await askedAt(300_000)).toEqual(["http://a.example"]);
    expect(engines.enginesOf(["a", "b"])).toEqual(["sglang", "ollama"]);
  });

  test("are asked for when a backend is back, and not while it is out", async () => {
    const { engines, asked, out } = enginesWith(["vllm", "ollama", "sglang"]);
    out.add("b");
    await engines.learn();
    expect(asked).toEqual(["http://a.example"]);
    out.delete("b");
    await engines.learn();
    out.add("b");
    await engines.learn();
    expect(engines.enginesOf(["a", "b"])).toEqual(["vllm", "ollama"]);
    out.delete("b");
    await engines.learn();
    await Bun.sleep(0);
    expect(engines.enginesOf(["a", "b"])).toEqual(["vllm", "sglang"]);
    expect(asked.slice(1)).toEqual(["http://b.example", "http://b.example"]);
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
