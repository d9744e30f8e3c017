import { beforeEach, describe, expect, test } from "bun:test";
import { clientOf } from "../support/client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { shared } from "../support/shared.ts";
import { startSimulator } from "../support/simulator/simulator.ts";
import { startTollgate, type Tollgate } from "../support/tollgate.ts";

const backend = shared(() => startSimulator());
beforeEach(() => backend.clear());

const chat = { model: "m", max_tokens: 2, messages: [{ role: "user", content: "Hi" }] };

const listQueued = async ({ admin }: Tollgate) => (await admin.listRunning()).filter(({ state }) => state === "queued");

/** What is sent one after the other, while the only place is taken, and in which order the backend gets it. */
async function orderOf(gate: Tollgate, sent: readonly { key: string; name: string; body?: object }[]) {
  const first = await clientOf(gate.url, gate.key).sendRaw(
    "/v1/chat/completions",
    { ...chat, stream: true },
    {
      script: "gap=forever@1",
    },
  );
  await first.nextEvent();
  const all: Promise<Response>[] = [];
  for (const { key, name, body } of sent) {
    all.push(
      clientOf(gate.url, key).send("/v1/chat/completions", { ...chat, ...body }, { headers: { "x-name": name } }),
    );
    await pollUntil(async () => (await listQueued(gate)).length === all.length);
  }
  const queued = await listQueued(gate);
  first.close();
  for (const response of all) expect((await response).status).toBe(200);
  return {
    queued: queued.map(({ priority }) => priority),
    order: backend
      .requests()
      .slice(1)
      .map((one) => one.header("x-name")),
  };
}

describe.each([1, 2])("with %p processes", (processes) => {
  const gate = shared(() =>
    startTollgate({
      PROXY_UPSTREAM_URL: backend.url,
      PROXY_MAX_CONCURRENCY: "1",
      PROXY_QUEUE_SIZE: "20",
      PROCESSES: String(processes),
    }),
  );

  test("a place goes to the highest priority that waits: the lowest of key, user and team, and of what a body says", async () => {
    const { id: team } = await gate.admin.expectOk<{ id: number }>("POST", "/api/teams", {
      name: `batch ${processes}`,
      priority: "low",
    });
    const create = async (fields: object) => (await gate.admin.createKey("k", fields)).key;
    const users = await gate.admin.createKey("users", { users_from: "body", user_limits: { tokens_per_day: 1000 } });
    const [high, ofTeam, low, ofUsers] = [
      await create({ priority: "high" }),
      await create({ priority: "high", team_id: team }),
      await create({ priority: "low" }),
      await create({ users_from: "body", user_limits: { priority: "low" } }),
    ];
    await gate.admin.expectOk("POST", "/api/users", { key_id: users.id, external: "bo", priority: "low" });
    const { queued, order } = await orderOf(gate, [
      { key: low, name: "low" },
      { key: ofTeam, name: "team" },
      { key: ofUsers, name: "user", body: { user: "kim" } },
      { key: users.key, name: "own", body: { user: "bo" } },
      { key: gate.key, name: "flex", body: { service_tier: "flex" } },
      { key: gate.key, name: "normal", body: { service_tier: "priority", priority: 9 } },
      { key: high, name: "high" },
    ]);
    expect(order.slice(0, 2)).toEqual(["high", "normal"]);
    expect(queued).toEqual(["low", "low", "low", "low", "low", "normal", "high"]);
    expect(await gate.waitForLog(({ priority }) => priority === "high")).toMatchObject({ status: 200 });
    const logged = await pollUntil(async () => {
      const requests = await gate.admin.listRequests("?limit=20");
      return requests.length === 8 && requests;
    });
    expect(Map.groupBy(logged, ({ priority }) => priority).get("low")).toHaveLength(5);
  });
});

test("a low request waits for up to PROXY_QUEUE_TIMEOUT_LOW, for a place and for its key's own limit", async () => {
  await using gate = await startTollgate({
    PROXY_UPSTREAM_URL: backend.url,
    PROXY_MAX_CONCURRENCY: "1",
    PROXY_QUEUE_TIMEOUT: "0.3",
  });
  const { key } = await gate.admin.createKey("batch", { priority: "low", max_concurrency: 1 });
  const send = (as: string, script = "") => clientOf(gate.url, as).send("/v1/chat/completions", chat, { script });
  const busy = await gate.sendRaw("/v1/chat/completions", { ...chat, stream: true }, { script: "gap=forever@1" });
  await busy.nextEvent();
  const low = [send(key), send(key)];
  await pollUntil(async () => (await listQueued(gate)).length === 2);
  // Two normal ones in turn have waited for as long as they may.
  for (let turn = 0; turn < 2; turn++) expect((await send(gate.key)).status).toBe(503);
  busy.close();
  expect((await Promise.all(low)).map(({ status }) => status)).toEqual([200, 200]);
});

test.each([
  ["POST", "/api/keys", { name: "a", priority: "urgent" }, "priority must be one of high, normal, low"],
  ["PUT", "/api/key-policy", { defaults: { priority: 1 } }, "priority must be one of high, normal, low"],
])("%s %s refuses another priority", async (method, path, body, error) => {
  await using gate = await startTollgate({ PROXY_UPSTREAM_URL: backend.url });
  const response = await gate.admin.request(method, path, body);
  expect([response.status, await response.json()]).toEqual([400, { error }]);
});

test.each([1, 2])(
  "PROXY_MAX_PREFILL_TOKENS has long prompts read one after the other (%p processes)",
  async (processes) => {
    await using gate = await startTollgate({
      PROXY_UPSTREAM_URL: backend.url,
      PROXY_MAX_PREFILL_TOKENS: "2000",
      PROCESSES: String(processes),
    });
    const messages = (words: number) => [{ role: "user", content: "word ".repeat(words) }];
    const stream = (words: number, script = "") =>
      gate.sendRaw("/v1/chat/completions", { ...chat, stream: true, messages: messages(words) }, { script });
    // Its role is no first token.
    const first = await stream(10_000, "gap=forever@1");
    await pollUntil(() => backend.requests().length === 1);
    const second = await stream(8000);
    const waiting = await pollUntil(async () =>
      (await gate.admin.listRunning()).find(({ state }) => state === "prefill"),
    );
    expect(waiting.prefill_tokens).toBeGreaterThan(8000);
    expect((await gate.send("/v1/chat/completions", chat)).status).toBe(200);
    expect(backend.requests()).toHaveLength(2);
    first.close();
    expect(await second.text()).toEndWith("data: [DONE]\n\n");
    await pollUntil(async () => (await gate.admin.listRequests()).some((one) => one.waited_for === "prefill"));
  },
);
