import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { fixedCatalog } from "../../src/config/catalog.ts";
import { clientOf } from "../support/client.ts";
import { logIn } from "../support/admin-client.ts";
import { catalogWith } from "../support/catalog.ts";
import { type Behaviour, type Engine, startEngine, tokens } from "../support/engine.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startProgram } from "../support/program.ts";
import { createTempFolder } from "../support/temp-folder.ts";
import { startTollgate, type Tollgate } from "../support/tollgate.ts";

const kinds = ["one process", "two processes"] as const;
type Kind = (typeof kinds)[number];

/** As many requests as a client each sends, one after the other. */
const [clients, requestsEach] = [12, 10];

type Gate = Pick<Tollgate, "url" | "admin" | "key"> & AsyncDisposable;

type Before = (second: Engine, gate: Gate) => void | Promise<void>;

interface Fault {
  /** Done to the second of three backends before the load. */
  before?: Before;
  /** Done to it, or to all, while the load runs. */
  during?: (second: Engine, all: readonly Engine[], gate: Gate, isOver: () => boolean) => Promise<void>;
  retry503?: boolean;
  environment?: Record<string, string>;
  /** The errors that no one may hide; all of them are the second backend's. */
  shown: readonly number[];
  /** It may cut a connection over which it has read nothing yet, which nobody can tell from one that it has read. */
  cuts?: boolean;
  /** Also tried where two processes share the backends. */
  isShared?: boolean;
}

const behaving =
  (how: Behaviour): Before =>
  (second) =>
    void (second.behaves = how);

async function setDraining(gate: Gate, { name }: Engine, draining: boolean): Promise<void> {
  await gate.admin.expectOk("PATCH", `/api/backends/${name}`, { draining });
}

const faults: [what: string, Fault][] = [
  ["refuses connections", { before: (second) => second.goAway(), shown: [], isShared: true }],
  ["answers 429", { before: behaving(429), shown: [] }],
  ["answers 503 of its engine", { before: behaving(503), retry503: true, shown: [], isShared: true }],
  ["answers 503", { before: behaving(503), shown: [503] }],
  ["answers 500", { before: behaving(500), shown: [500] }],
  ["answers 502", { before: behaving(502), shown: [502] }],
  ["breaks its responses off", { before: behaving("breaks"), shown: [502] }],
  ["resets connections", { before: behaving("resets"), shown: [502] }],
  ["cuts connections, as its container has exited", { before: behaving("gone"), shown: [502] }],
  [
    "hangs",
    {
      before: behaving("hangs"),
      // Longer than the others ever take, on a loaded machine too.
      environment: { PROXY_NONSTREAM_READ_TIMEOUT: "1", PROXY_STREAM_READ_TIMEOUT: "1" },
      shown: [504],
    },
  ],
  ["is drained", { before: (second, gate) => setDraining(gate, second, true), shown: [] }],
  [
    "dies",
    {
      async during(second) {
        await pollUntil(() => second.executions.size > 3);
        second.goAway();
      },
      shown: [502],
      cuts: true,
      isShared: true,
    },
  ],
  [
    "goes and comes",
    {
      async during(second, _, __, isOver) {
        while (!isOver()) {
          second.goAway();
          await Bun.sleep(20);
          second.comeBack();
          await Bun.sleep(20);
        }
      },
      shown: [502],
      cuts: true,
      isShared: true,
    },
  ],
  [
    "is drained and back while requests run",
    {
      async during(second, _, gate) {
        await pollUntil(() => second.executions.size > 3);
        await setDraining(gate, second, true);
        await setDraining(gate, second, false);
      },
      shown: [],
      isShared: true,
    },
  ],
  [
    "is away with all others, and back",
    {
      environment: { PROXY_BACKEND_WAIT: "20" },
      before: (second) => second.goAway(),
      async during(_, all) {
        // Nothing runs there yet: the first requests come when nobody is left.
        await Bun.sleep(300);
        for (const one of all) one.comeBack();
      },
      shown: [],
      isShared: true,
    },
  ],
];

async function startGate(all: readonly Engine[], { retry503 = false, environment }: Fault, kind: Kind): Promise<Gate> {
  if (kind === "two processes") return startProcesses(all, retry503, environment);
  const catalog = catalogWith(all.map(({ name, url }) => ({ name, url, retry503 })));
  return startTollgate(environment, { catalog: fixedCatalog(catalog) });
}

async function startProcesses(
  all: readonly Engine[],
  retry503: boolean,
  environment: Fault["environment"],
): Promise<Gate> {
  const folder = createTempFolder();
  const lines = all.map(({ name, url }) => `  ${name}: { url: "${url}", retry_503: ${retry503} }`);
  const names = all.map(({ name }) => name).join(", ");
  writeFileSync(folder.file("models.yaml"), `backends:\n${lines.join("\n")}\nmodels:\n  m: { backends: [${names}] }\n`);
  const own = { MODELS_FILE: folder.file("models.yaml"), PROCESSES: "2", ADMIN_PASSWORD: "password" };
  const { url, adminUrl, stop } = await startProgram({ ...own, ...environment });
  const admin = await logIn(adminUrl, "admin", "password");
  return {
    url,
    admin,
    key: (await admin.createKey("unlimited")).key,
    async [Symbol.asyncDispose]() {
      await stop();
      folder.remove();
    },
  };
}

/** @returns 502 for a stream that is cut too */
async function send({ url }: Gate, id: string, key: string, stream: boolean): Promise<number> {
  const body = { model: "m", max_tokens: 8, stream, messages: [{ role: "user", content: id }] };
  const response = await clientOf(url, key).send("/v1/chat/completions", body, { headers: { "x-request-id": id } });
  const text = await response.text().catch(() => "");
  return response.ok && !text.includes(stream ? "[DONE]" : "ok") ? 502 : response.status;
}

describe.each(kinds)("in %s, with three backends of which one", (kind) => {
  test.each(faults.filter(([, { isShared = false }]) => isShared || kind !== "two processes"))(
    "%s",
    async (_, fault) => {
      using first = startEngine("first");
      using second = startEngine("second");
      using third = startEngine("third");
      const all = [first, second, third];
      await using gate = await startGate(all, fault, kind);
      const limited = await gate.admin.createKey("limited", { tokens_per_day: 1_000_000, max_concurrency: clients });
      if (fault.environment?.["PROXY_BACKEND_WAIT"] !== undefined) for (const one of all) one.goAway();
      await fault.before?.(second, gate);
      const ended = new Map<string, number>();
      const keys = [gate.key, limited.key];
      const load = Promise.all(
        Array.from({ length: clients }, async (__, client) => {
          for (let count = 0; count < requestsEach; count++) {
            const id = `${client}-${count}`;
            ended.set(id, await send(gate, id, keys[client % keys.length] ?? "", count % 2 === 0));
          }
        }),
      );
      let isOver = false;
      const over = load.finally(() => (isOver = true));
      await Promise.all([over, fault.during?.(second, all, gate, () => isOver)]);

      const failures = [...ended].filter(([, status]) => status !== 200);
      expect(failures.filter(([, status]) => !fault.shown.includes(status))).toEqual([]);
      // Whatever failed was the second backend's alone, and nothing that it failed is hidden but what it refused.
      const failedIds = new Set(failures.map(([id]) => id));
      expect([...failedIds].filter((id) => first.executions.has(id) || third.executions.has(id))).toEqual([]);
      if (fault.shown.length > 0) expect(second.failed.filter((id) => !failedIds.has(id))).toEqual([]);
      if (fault.cuts !== true) expect([...failedIds].filter((id) => !second.failed.includes(id))).toEqual([]);
      // Nothing was executed twice, and nothing that succeeded was not.
      const executions = new Map<string, number>();
      for (const one of all) {
        for (const [id, times] of one.executions) executions.set(id, (executions.get(id) ?? 0) + times);
      }
      expect([...executions].filter(([, times]) => times !== 1)).toEqual([]);
      const succeeded = ended.size - failures.length;
      expect(ended.size).toBe(clients * requestsEach);
      // Of backends that are all back, the one that is found first may serve what is left by itself.
      if (fault.environment?.["PROXY_BACKEND_WAIT"] === undefined) {
        expect(first.executions.size + third.executions.size).toBeGreaterThan(0);
      }
      const counted = (await gate.admin.listKeys()).map(
        ({ total_request_count: requests, total_input_tokens: input, total_output_tokens: output }) => [
          requests,
          input,
          output,
        ],
      );
      const sum = counted.reduce(([a = 0, b = 0, c = 0], [x = 0, y = 0, z = 0]) => [a + x, b + y, c + z], [0, 0, 0]);
      expect(sum).toEqual([succeeded, succeeded * tokens.input, succeeded * tokens.output]);
    },
  );
});
