import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { pollUntil } from "../support/poll-until.ts";
import { childrenOf } from "../support/proc.ts";
import { runProgram } from "../support/program.ts";
import { startProgramWithKey } from "../support/program-with-key.ts";
import { startBackends } from "../support/several-backends.ts";
import { startSimulator } from "../support/simulator/simulator.ts";
import { startTollgate, type Tollgate } from "../support/tollgate.ts";

interface Listed {
  kind: string;
  object: string;
  what: string;
  instance: string | null;
}

interface States {
  states: Listed[];
  past: Listed[];
}

const minute = 60_000;
const chat = { model: "m", max_tokens: 2, messages: [{ role: "user", content: "Hi" }] };

const listOf = ({ admin }: Pick<Tollgate, "admin">): Promise<States> => admin.expectOk("GET", "/api/states");
const kindsOf = async (gate: Pick<Tollgate, "admin">): Promise<string[]> =>
  (await listOf(gate)).states.map(({ kind, object }) => (object === "" ? kind : `${kind} ${object}`));

/** Resolves once it stands, or no longer does. */
const stands = (gate: Pick<Tollgate, "admin">, kind: string, isSo = true): Promise<unknown> =>
  pollUntil(async () => (await kindsOf(gate)).includes(kind) === isSo, 20_000);

const post = async (gate: Tollgate, script = ""): Promise<number> => {
  const response = await gate.send("/v1/chat/completions", chat, { script });
  await response.text();
  return response.status;
};

test("a models file that is refused is known until a good one is in use, and the command and the metrics say so", async () => {
  using backends = startBackends({ a: "" });
  const program = await startProgramWithKey(undefined, {
    MODELS_FILE: backends.file,
    PROCESSES: "2",
    METRICS_TOKEN: "scrape",
  });
  const good = await Bun.file(backends.file).text();
  writeFileSync(backends.file, good.replace("models:", "modells:"));
  await stands(program, "models_file_refused");
  const [state] = (await listOf(program)).states;
  expect(state?.what).toMatch(/^MODELS_FILE is refused: .*modells/);
  expect(state?.instance).not.toContain("/");
  const metrics = await fetch(`${program.adminUrl}/metrics`, { headers: { authorization: "Bearer scrape" } });
  expect(await metrics.text()).toContain('tollgate_problem{kind="models_file_refused",silenced="no"} 1');
  writeFileSync(backends.file, good);
  await stands(program, "models_file_refused", false);
  expect((await listOf(program)).past).toMatchObject([{ kind: "models_file_refused" }]);
  await program.stop();
});

test("`tollgate check` says what a server on its database says", async () => {
  const settings = { PROXY_UPSTREAM_URL: "http://127.0.0.1:9", ADMIN_PASSWORD: "password" };
  const program = await startProgramWithKey(undefined, settings);
  await stands(program, "backend_out 127.0.0.1:9");
  const { stdout } = await runProgram(["check"], { ...settings, DATA_DIR: program.dataDir });
  expect(stdout).toMatch(/^warning +state +127\.0\.0\.1:9 does not respond .*, since .*Z\. See that its server runs/m);
  await program.stop();
});

test("a backend that fails is told of until it has not for five minutes; what clients do wrong is not its failure", async () => {
  let ahead = 0;
  using backend = startSimulator();
  await using gate = await startTollgate({ PROXY_UPSTREAM_URL: backend.url }, { clock: () => Date.now() + ahead });
  for (let n = 0; n < 8; n++) await post(gate, "status=400");
  const kind = `backend_failing ${new URL(backend.url).host}`;
  for (const script of ["status=500", "reset-before-head", "status=503", "reset-before-head"]) await post(gate, script);
  expect(await kindsOf(gate)).toEqual([]);
  await post(gate, "status=500");
  await stands(gate, kind);
  ahead += 6 * minute;
  await stands(gate, kind, false);
});

test("a queue that refuses is told of for five minutes", async () => {
  let ahead = 0;
  using backend = startSimulator();
  const settings = { PROXY_UPSTREAM_URL: backend.url, PROXY_MAX_CONCURRENCY: "1", PROXY_QUEUE_SIZE: "0" };
  await using gate = await startTollgate(settings, { clock: () => Date.now() + ahead });
  const first = await gate.sendRaw("/v1/chat/completions", { ...chat, stream: true }, { script: "gap=forever@1" });
  await first.nextEvent();
  expect(await kindsOf(gate)).toEqual([]);
  await post(gate);
  await stands(gate, "queue_refuses");
  first.reset();
  ahead += 6 * minute;
  await stands(gate, "queue_refuses", false);
});

test("a key whose front end signs with another secret, and one with nearly all of its users, are told of", async () => {
  let ahead = 0;
  using backend = startSimulator();
  const settings = { PROXY_UPSTREAM_URL: backend.url };
  await using gate = await startTollgate(settings, { clock: () => Date.now() + ahead });
  const { id, key } = await gate.admin.createKey("chat", {
    users_from: "open-webui",
    users_secret: "0123456789abcdef0123456789abcdef",
    users_max: 1,
  });
  const complete = (token: string) =>
    gate.send("/v1/chat/completions", chat, { key, headers: { "x-openwebui-user-jwt": token } });
  expect((await complete("of.another.secret")).status).toBe(401);
  await stands(gate, `user_source_refuses key ${id}`);
  expect((await listOf(gate)).states[0]?.what).toBe(
    `The users' tokens of 1 request with key ${id} were refused in 5 minutes`,
  );
  ahead += 6 * minute;
  await stands(gate, `user_source_refuses key ${id}`, false);
  await gate.admin.expectOk("POST", "/api/users", { key_id: id, external: "first" });
  await stands(gate, "users_nearly_full chat");
  await gate.admin.expectOk("PATCH", `/api/keys/${id}`, { users_max: 2 });
  await stands(gate, "users_nearly_full chat", false);
});

test("a GPU host that falls silent, a backend that was taken out, and a clock that stepped are told of", async () => {
  let ahead = 0;
  using backends = startBackends({ a: "", b: "" });
  await using gate = await startTollgate({ MODELS_FILE: backends.file }, { clock: () => Date.now() + ahead });
  const push = () =>
    fetch(`${gate.adminUrl}/api/gpu-stats`, {
      method: "POST",
      headers: { "x-api-key": gate.key, "content-type": "application/json" },
      body: JSON.stringify({ host: "rack", gpus: [{ gpu_id: 0, name: "GPU", power_draw_w: 100 }] }),
    });
  await push();
  await gate.admin.expectOk("PATCH", "/api/backends/a", { draining: true });
  expect(await kindsOf(gate)).toEqual([]);
  ahead += 24 * 60 * minute;
  await stands(gate, "clock_stepped");
  await stands(gate, "gpu_silent rack");
  await stands(gate, "taken_out a");
  await push();
  await gate.admin.expectOk("PATCH", "/api/backends/a", { draining: false });
  await stands(gate, "gpu_silent rack", false);
  await stands(gate, "taken_out a", false);
});

test("a child that is replaced again and again is told of", async () => {
  using backend = startSimulator();
  const program = await startProgramWithKey(backend.url, { PROCESSES: "2" });
  for (let n = 0; n < 3; n++) {
    const [child = 0, ...others] = await pollUntil(() => {
      const all = childrenOf(program.pid);
      return all.length === 2 && all;
    });
    expect(others).toHaveLength(1);
    process.kill(child, "SIGKILL");
    await pollUntil(() => !childrenOf(program.pid).includes(child));
  }
  await stands(program, "child_replaced");
  await program.stop();
});
