import { describe, expect, test } from "bun:test";
import { chat, errorOf, startTollgateWithKeys } from "../support/tollgate-with-keys.ts";
import { shared } from "../support/shared.ts";

const gate = shared(() => startTollgateWithKeys());

describe("the rules of a key", () => {
  test("refuse models that are not allowed, by the name asked for and the name sent", async () => {
    const { key } = await gate.createKey({ allowed_models: ["sim*"] });
    expect((await gate.post(key, { body: { ...chat, model: "SIM-large" } })).status).toBe(200);
    const refused = await gate.post(key, { body: { ...chat, model: "other" } });
    expect(await errorOf(refused)).toMatchObject({ status: 403, type: "permission_error", code: "model_not_allowed" });
    for (const body of [{ input: "x" }, { model: 7 }]) expect((await gate.post(key, { body })).status).toBe(403);
  });

  test("open the paths of its globs alone, as a lenient backend would read the path", async () => {
    const { key } = await gate.createKey({ allowed_paths: ["/v1/chat/*", "/v1/files/*/content", "/v1/models"] });
    const statusOf = async (path: string) => (await gate.send(path, undefined, { key, redirect: "manual" })).status;
    for (const path of ["/v1/chat/x", "/v1/chat/a/b", "/v1/ch%61t//x", "/v1/files/a%2Fb/content", "/v1/models/"]) {
      expect([path, await statusOf(path)]).not.toEqual([path, 403]);
    }
    for (const path of [
      "/v1/files",
      "/v1/Chat/x",
      "/v1/chat",
      "/v1/files/a/content/b",
      "/v1/embeddings",
      "/v1/models/x",
      "/v1/x%3b/v1/chat/y",
    ]) {
      expect([path, await statusOf(path)]).toEqual([path, 403]);
    }
    for (const path of ["/v1/chat/%zz", "/v1/chat/%ff", "/v1/chat/100%25"]) {
      expect([path, await statusOf(path)]).toEqual([path, 400]);
    }
    expect(await statusOf("/v1/tollgate/key")).toBe(200);
    const refused = await gate.send("/v1/embeddings", {}, { key });
    expect(await errorOf(refused)).toMatchObject({ status: 403, type: "permission_error", code: "path_not_allowed" });
  });

  test("are not needed for what PROXY_CLOSED_PATHS closes for all keys, however the path is written", async () => {
    await using closed = await startTollgateWithKeys({ PROXY_CLOSED_PATHS: "/v1/files*, /v1/*/secret" });
    const { key } = await closed.createKey({ allowed_paths: ["/v1/files/*"] });
    const errorAt = async (path: string, of = closed.key) => errorOf(await closed.send(path, undefined, { key: of }));
    for (const path of [
      "/v1/files",
      "/v1/files/a",
      "/v1/fil%65s",
      "/v1/fil%2565s",
      "/v1//files",
      "//v1/files",
      "/v1/Files",
      "/v1/x;a/y/secret",
      "/v1/%2e/files",
    ]) {
      expect([path, await errorAt(path)]).toMatchObject([path, { status: 404, code: "not_found" }]);
    }
    expect(await errorAt("/v1/files/a", key)).toMatchObject({ status: 404 });
    expect(await errorAt("/v1/x/%ff")).toMatchObject({ status: 400, code: "invalid_path" });
    expect(await errorAt("/v1/files", "wrong")).toMatchObject({ status: 401 });
    expect((await closed.send("/v1/secret")).status).toBe(200);
  });

  test("close batches to a key with a limit of tokens, unless its paths name them", async () => {
    const { key } = await gate.createKey({ tokens_per_day: 100_000 });
    const { key: other } = await gate.createKey({ tokens_per_day: 100_000, allowed_paths: ["/v1/batches*"] });
    for (const path of ["/v1/batches", "/v1/batches%2Fx", "/v1//batches", "/v1/Batches"]) {
      const statuses = await Promise.all(
        [key, other, gate.key].map(async (one) => (await gate.send(path, undefined, { key: one })).status),
      );
      expect([path, ...statuses]).toEqual([path, 403, path === "/v1/Batches" ? 403 : 200, 200]);
    }
  });

  test("refuse a key that is only for GPU samples", async () => {
    const { key } = await gate.createKey({ scope: "gpu" });
    expect(await errorOf(await gate.post(key))).toMatchObject({ status: 403, code: "scope_not_allowed" });
  });

  test("end with the key's expiry", async () => {
    const { key, id } = await gate.createKey({ expires_at: "2100-01-01T00:00:00Z" });
    expect((await gate.post(key)).status).toBe(200);
    await gate.admin.updateKey(id, { expires_at: new Date(Date.now() - 1).toISOString() });
    expect((await gate.post(key)).status).toBe(401);
  });

  test("say nothing on the responses of a key without limits", async () => {
    const response = await gate.post(gate.key);
    expect([...response.headers.keys()].filter((name) => name.startsWith("x-ratelimit"))).toEqual([]);
  });
});
