import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startTollgate, type Tollgate } from "../support/tollgate.ts";
import { pollUntil } from "../support/poll-until.ts";
import { type BackendName, findWhyNot, type RealBackend } from "./backend.ts";
import {
  type Call,
  countedFor,
  post,
  reportedIn,
  streamed,
  type Tokens,
  valuesIn,
  weatherTool,
  wholeCalls,
  withUsage,
} from "./calls.ts";

export interface StartedBackend extends RealBackend {
  url: string;
}

export interface Suite {
  name: BackendName;
  start(): Promise<StartedBackend>;
  /** The key that the backend itself wants. */
  apiKey?: string;
  /** What the backend says it read and generated since its start; undefined if it does not say. */
  generated?: (url: string) => Promise<Tokens>;
  /** Requests that it works on. */
  running?: (url: string) => Promise<number>;
  /** Fields of a request that make it call the tool; undefined if it cannot. */
  toolFields?: Readonly<Record<string, unknown>>;
  /** Calls that the backend itself refuses. */
  unsupported?: readonly string[];
  /** Whether it reports usage with every event. */
  isContinuous: boolean;
  /** Removes from a stream what differs between two runs of the same request. */
  normalize: (text: string) => string;
}

const model = "tiny";
/** Takes any of them many seconds. */
const endlessTokens = 16_000;
const isChat = (name: string): boolean => name === "chat" || name === "completions";

/** What holds for any backend: counts equal its own, and clients get what they would get from it directly. */
export function describeBackend(suite: Suite): void {
  describe.skipIf(findWhyNot(suite.name) !== undefined)(suite.name, () => {
    let backend: StartedBackend;
    const gates: Record<string, Tollgate> = {};
    const gate = (mode: "off" | "final" | "continuous"): Tollgate => gates[mode] as Tollgate;
    beforeAll(async () => {
      backend = await suite.start();
      for (const mode of ["off", "final", "continuous"]) {
        gates[mode] = await startTollgate({
          PROXY_UPSTREAM_URL: backend.url,
          PROXY_UPSTREAM_API_KEY: suite.apiKey,
          PROXY_FORCE_STREAM_USAGE: mode,
          // So that the prompt is the client's own, and texts can be compared.
          PROXY_HAN_GUARD: "off",
        });
      }
    }, 1_200_000);
    afterAll(async () => {
      for (const each of Object.values(gates)) await each[Symbol.asyncDispose]();
      await backend[Symbol.asyncDispose]();
    });

    const generatedBy = async (act: () => Promise<unknown>): Promise<Tokens | undefined> => {
      const before = await suite.generated?.(backend.url);
      await act();
      if (before === undefined) return undefined;
      const after = (await suite.generated?.(backend.url)) ?? before;
      return { input: after.input - before.input, output: after.output - before.output };
    };

    /** Makes a call through Tollgate and compares its count with what the backend says it generated. */
    async function callAndCompare(through: Tollgate, { path, body }: Call): Promise<{ text: string; counted: Tokens }> {
      let text = "";
      let counted: Tokens = { input: 0, output: 0 };
      const generated = await generatedBy(async () => {
        counted = await countedFor(through, async () => {
          const response = await post(through.url, through.key, { path, body: { model, ...body } });
          text = await response.text();
          expect({ status: response.status, text }).toMatchObject({ status: 200 });
        });
      });
      if (generated !== undefined) expect(counted).toEqual(generated);
      return { text, counted };
    }

    const all: [string, Call][] = Object.entries(wholeCalls).flatMap(([name, call]) => [
      [`${name}, whole`, call],
      [`${name}, streamed`, isChat(name) ? withUsage(streamed(call)) : streamed(call)],
    ]);
    const supported = all.filter(([name]) => suite.unsupported?.includes(name) !== true);
    test.each(supported)("counts what the backend reports: %s", async (_, call) => {
      const { text, counted } = await callAndCompare(gate("off"), call);
      expect(counted).toEqual(reportedIn(text));
      expect(counted.input).toBeGreaterThan(0);
      expect(counted.output).toBeGreaterThan(0);
    });

    const { toolFields } = suite;
    test.skipIf(toolFields === undefined).each(["whole", "streamed"])("counts a tool call, %s", async (how) => {
      const body = { ...wholeCalls["chat"]?.body, max_tokens: 200, tools: [weatherTool], ...toolFields };
      const call = { path: "/v1/chat/completions", body };
      const { text, counted } = await callAndCompare(gate("off"), how === "whole" ? call : withUsage(streamed(call)));
      expect(text).toMatch(/"tool_calls":\[\{[^\]]*"name":"weather"/);
      expect(counted).toEqual(reportedIn(text));
    });

    describe.each(["final", "continuous"] as const)("with PROXY_FORCE_STREAM_USAGE=%s", (mode) => {
      const forced = Object.entries(wholeCalls).filter(([name]) => isChat(name));
      test.each(forced)(
        "counts a stream of %s whose client does not want usage, and changes nothing",
        async (_, call) => {
          const { text, counted } = await callAndCompare(gate(mode), streamed(call));
          const { path, body } = streamed(call);
          const direct = await post(backend.url, suite.apiKey ?? "", { path, body: { model, ...body } });
          expect(suite.normalize(text)).toBe(suite.normalize(await direct.text()));
          if (suite.generated !== undefined) expect(counted.output).toBeGreaterThan(0);
        },
      );

      const oddOptions = forced.flatMap(([name, call]) =>
        [{}, { include_usage: 1 }, [], 1].map((options) => [name, options, call] as const),
      );
      test.each(oddOptions)("counts a stream of %s whose stream_options are %j", async (_, options, call) => {
        const { path, body } = streamed(call);
        const { text, counted } = await callAndCompare(gate(mode), {
          path,
          body: { ...body, stream_options: options },
        });
        const isObject = !Array.isArray(options) && typeof options === "object";
        const like = isObject ? withUsage(streamed(call)) : streamed(call);
        const direct = await post(backend.url, suite.apiKey ?? "", { path, body: { model, ...like.body } });
        expect(suite.normalize(text)).toBe(suite.normalize(await direct.text()));
        expect(counted.output).toBeGreaterThan(0);
      });

      test.each(forced)("leaves usage to a client of %s that wants it", async (_, call) => {
        const { text, counted } = await callAndCompare(gate(mode), withUsage(streamed(call)));
        expect(counted).toEqual(reportedIn(text));
      });
    });

    const { running } = suite;
    test.skipIf(running === undefined)("stops the backend's work when a stream's client leaves", async () => {
      const through = gate("continuous");
      const leaving = new AbortController();
      const body = { ...wholeCalls["chat"]?.body, model, stream: true, max_tokens: endlessTokens };
      const { output } = await countedFor(through, async () => {
        const call = { path: "/v1/chat/completions", body };
        const response = await post(through.url, through.key, call, leaving.signal);
        const reader = response.body?.getReader();
        // The first event has no text, and so no usage.
        for (let events = 0; events < 5; events++) await reader?.read();
        leaving.abort();
        const left = performance.now();
        await pollUntil(async () => (await running?.(backend.url)) === 0);
        expect(performance.now() - left).toBeLessThan(2000);
      });
      expect(output).toBeLessThan(endlessTokens);
      if (suite.isContinuous) expect(output).toBeGreaterThan(0);
    });

    test("lists the backend's models", async () => {
      const list = await fetch(`${gate("off").url}/v1/models`, {
        headers: { authorization: `Bearer ${gate("off").key}` },
      });
      expect(valuesIn(await list.text())[0]).toMatchObject({ data: [{ id: model }] });
    });
  });
}
