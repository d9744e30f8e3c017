import { describe, expect, test } from "bun:test";
import { pollUntil } from "../support/poll-until.ts";
import { shared } from "../support/shared.ts";
import { startBackends } from "../support/several-backends.ts";
import { startTollgate, type Tollgate } from "../support/tollgate.ts";
import { chat, startTollgateWithKeys } from "../support/tollgate-with-keys.ts";

const gate = shared(() => startTollgateWithKeys());

const findRunning = async (keyId: number, { admin }: Pick<Tollgate, "admin"> = gate) =>
  (await admin.listRunning()).find(({ key_id }) => key_id === keyId);

/** Whether nothing of the key's response is read any more. */
async function isStalled(keyId: number): Promise<boolean> {
  const before = await findRunning(keyId);
  await Bun.sleep(300);
  const after = await findRunning(keyId);
  return before !== undefined && before.received_bytes === after?.received_bytes;
}

describe("end_running", () => {
  const stream = { ...chat, stream: true };

  // Those that only wait do so side by side, each with a key of its own.
  test.concurrent.each<[string, (id: number) => Promise<unknown>]>([
    ["switching a key off", (id) => gate.admin.updateKey(id, { is_active: false, end_running: true })],
    ["deleting it", (id) => gate.admin.expectOk("DELETE", `/api/keys/${id}?end_running=true`)],
    [
      "an expiry that has come",
      (id) => gate.admin.updateKey(id, { expires_at: new Date(Date.now() - 1).toISOString(), end_running: true }),
    ],
    [
      "an expiry that comes",
      (id) => gate.admin.updateKey(id, { expires_at: new Date(Date.now() + 300).toISOString(), end_running: true }),
    ],
  ])("ends running responses with %s soon, and counts what was seen", async (_, end) => {
    const { id, key } = await gate.createKey({});
    const body = { ...stream, stream_options: { include_usage: true, continuous_usage_stats: true } };
    const client = await gate.postRaw(key, "gap=forever@3", body);
    await client.nextEvent();
    const other = await gate.postRaw(gate.key, "gap=450ms@1; gap=450ms@2; gap=450ms@3; gap=450ms@4", stream);
    await end(id);
    // Agents send again what breaks off.
    expect(await client.ended()).toBe("complete");
    expect(await client.text()).toContain('"code":"key_revoked"');
    expect(await client.text()).not.toContain("[DONE]");
    expect(await gate.waitForLog(({ keyId, code }) => keyId === id && code === "key_revoked")).toMatchObject({
      outcome: "revoked",
    });
    expect(await other.text()).toContain("[DONE]");
  });

  test.concurrent("ends nothing that begins after the key was switched on again", async () => {
    const { id, key } = await gate.createKey({});
    const before = await gate.postRaw(key, "gap=forever@1", stream);
    await before.nextEvent();
    await gate.admin.updateKey(id, { is_active: false, end_running: true });
    await gate.admin.updateKey(id, { is_active: true });
    const after = await gate.postRaw(key, "gap=900ms@1", stream);
    expect(await after.text()).toContain("[DONE]");
    expect(await before.text()).toContain('"code":"key_revoked"');
  });

  test.concurrent("is not asked for, so responses finish", async () => {
    const { id, key } = await gate.createKey({});
    const client = await gate.postRaw(key, "gap=300ms@1; gap=300ms@2; gap=300ms@3", stream);
    await client.nextEvent();
    await gate.admin.updateKey(id, { is_active: false });
    expect(await client.text()).toContain("[DONE]");
  });

  test.concurrent("with an expiry is taken back with the expiry", async () => {
    const { id, key } = await gate.createKey({});
    await gate.admin.updateKey(id, { expires_at: new Date(Date.now() + 3000).toISOString(), end_running: true });
    await gate.admin.updateKey(id, { expires_at: null });
    const client = await gate.postRaw(key, "gap=4s@1", stream);
    expect(await client.text()).toContain("[DONE]");
  });

  test.each<[string, (id: number) => Promise<unknown>]>([
    ["switching a key off", (id) => gate.admin.updateKey(id, { is_active: false, end_running: true })],
    ["deleting it", (id) => gate.admin.expectOk("DELETE", `/api/keys/${id}?end_running=true`)],
  ])("ends a response whose client does not read with %s soon, and counts it", async (_, end) => {
    const { id, key } = await gate.createKey({});
    const client = await gate.postRaw(key, "flood", stream);
    await client.nextEvent();
    client.pause();
    await pollUntil(() => isStalled(id));
    const begun = performance.now();
    await end(id);
    expect(await gate.waitForLog(({ keyId, code }) => keyId === id && code === "key_revoked")).toMatchObject({
      outcome: "revoked",
      status: 200,
    });
    // A loaded machine is slower.
    expect(performance.now() - begun).toBeLessThan(5000);
    expect(await findRunning(id)).toBeUndefined();
    client.resume();
    expect(await client.ended()).not.toBe("complete");
  });

  test.each([
    [{ is_active: false, end_running: 1 }, "end_running must be a boolean"],
    [{ is_active: true, end_running: true }, "end_running requires is_active false or expires_at"],
    [{ expires_at: null, end_running: true }, "end_running requires is_active false or expires_at"],
    [{ end_running: true }, "No fields to update"],
  ])("refuses %j", async (fields, error) => {
    const { id } = await gate.createKey({});
    const response = await gate.admin.request("PATCH", `/api/keys/${id}`, fields);
    expect([response.status, await response.json()]).toEqual([400, { error }]);
  });
});

describe("a request that an administrator ends", () => {
  const bodies: Record<string, object> = {
    "/v1/chat/completions": chat,
    "/v1/completions": { model: "m", prompt: "Hi" },
    "/v1/messages": chat,
    "/v1/responses": { model: "m", input: "Hi" },
  };
  const message = "An administrator ended this request.";
  const notToBeSentAgain = { error_code: "dlp_request_denied" };

  const send = (server: Tollgate, key: string, path: string, script: string): Promise<Response> =>
    server.send(path, { ...bodies[path], stream: true }, { key, script });

  async function endAll(server: Pick<Tollgate, "admin">, keyId: number): Promise<void> {
    const { id } = await pollUntil(() => findRunning(keyId, server));
    await server.admin.endRunning(id);
  }

  const lastEvent = (text: string): unknown => JSON.parse(text.trimEnd().split("data: ").at(-1) ?? "");

  const endings: [path: string, event: object][] = [
    ["/v1/chat/completions", { error: { code: "ended_by_admin", message } }],
    ["/v1/completions", { error: { code: "ended_by_admin", message } }],
    ["/v1/messages", { type: "error", error: { message, details: notToBeSentAgain } }],
    [
      "/v1/responses",
      {
        type: "response.failed",
        response: { status: "failed", error: { code: "invalid_prompt", message } },
        error: { code: "ended_by_admin", message },
      },
    ],
  ];

  // Agents repeat what breaks off.
  test.concurrent.each(endings)(
    "within a stream on %s gets an error that says so, and a clean end",
    async (path, event) => {
      const { id, key } = await gate.createKey({});
      const response = await send(gate, key, path, "gap=forever@3");
      await endAll(gate, id);
      const text = await response.text();
      expect(lastEvent(text)).toMatchObject(event);
      expect(text).not.toMatch(/\[DONE\]|message_stop|response\.completed/);
      expect(await gate.waitForLog(({ keyId, outcome }) => keyId === id && outcome === "ended_by_admin")).toMatchObject(
        {
          status: 200,
        },
      );
    },
  );

  const earlyEndings: typeof endings = [
    ...endings.slice(0, -1),
    ["/v1/responses", { type: "error", code: "invalid_prompt", message, error: { code: "ended_by_admin" } }],
  ];

  test.concurrent.each(earlyEndings)("while %s waits with heartbeats gets the same", async (path, event) => {
    await using patient = await startTollgateWithKeys({ PROXY_SSE_KEEPALIVE: "0.1" });
    const { id, key } = await patient.createKey({});
    const response = await send(patient, key, path, "slow-head=60s");
    expect(response.status).toBe(200);
    await endAll(patient, id);
    expect(lastEvent(await response.text())).toMatchObject(event);
  });

  test.concurrent.each(Object.keys(bodies))(
    "before %s has a head gets a 400 that agents do not repeat",
    async (path) => {
      const { id, key } = await gate.createKey({});
      const pending = send(gate, key, path, "slow-head=60s");
      await endAll(gate, id);
      const response = await pending;
      expect([response.status, response.headers.get("x-should-retry")]).toEqual([400, "false"]);
      expect(await response.json()).toMatchObject({
        error: { type: "invalid_request_error", code: "ended_by_admin", details: notToBeSentAgain },
      });
    },
  );

  test("ends too if its backend was busy, and no other one could be reached", async () => {
    using backends = startBackends({ busy: "", gone: "spill: true" });
    await using patient = await startTollgate({ MODELS_FILE: backends.file });
    backends.stop("gone");
    // Of the body of its refusal, the rest never comes.
    backends.get("busy").handle((_, wire) => {
      wire.write("HTTP/1.1 429 Too Many Requests\r\ncontent-length: 100\r\n\r\n{");
    });
    const pending = send(patient, patient.key, "/v1/messages", "");
    await pollUntil(async () => (await findRunning(patient.keyId, patient))?.received_bytes === 1);
    await endAll(patient, patient.keyId);
    expect(await (await pending).json()).toMatchObject({ error: { code: "ended_by_admin" } });
  });

  test("ends too while it waits for its backend again, which could not be reached", async () => {
    using backends = startBackends({ a: "" });
    await using patient = await startTollgate({ MODELS_FILE: backends.file, PROXY_BACKEND_WAIT: "60" });
    backends.stop("a");
    const pending = send(patient, patient.key, "/v1/chat/completions", "");
    await patient.waitForLog((entry) => entry["message"] === "Backend out");
    await endAll(patient, patient.keyId);
    expect(await (await pending).json()).toMatchObject({ error: { code: "ended_by_admin" } });
  });

  test("breaks off if its client takes nothing", async () => {
    const { id, key } = await gate.createKey({});
    const client = await gate.postRaw(key, "flood", { ...chat, stream: true });
    await client.nextEvent();
    client.pause();
    await pollUntil(() => isStalled(id));
    await endAll(gate, id);
    await gate.waitForLog(({ keyId, outcome }) => keyId === id && outcome === "ended_by_admin");
    client.resume();
    expect(await client.ended()).not.toBe("complete");
  });
});
