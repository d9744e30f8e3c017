import { beforeEach, describe, expect, test } from "bun:test";
import { startSimulator } from "../support/simulator/simulator.ts";
import { pollUntil } from "../support/poll-until.ts";
import { startTollgate } from "../support/tollgate.ts";
import { shared } from "../support/shared.ts";

const backend = shared(() => startSimulator());
const gate = shared(() => startTollgate({ PROXY_UPSTREAM_URL: backend.url, TRUST_PROXY: "1" }));
beforeEach(() => backend.clear());

const get = (path: string, headers: Record<string, string>): Promise<Response> =>
  fetch(gate.url + path, { headers: { "x-api-key": gate.key, ...headers } });

test("client, backend and log have the client's request id, and the log has the client's address", async () => {
  const response = await get("/v1/models", {
    "x-request-id": "from-client-1",
    "x-forwarded-for": "192.0.2.1, 198.51.100.7",
    "x-simulate": "header=X-Request-Id: from-backend; header=Request-Id: from-backend",
  });
  for (const name of ["x-request-id", "request-id"]) expect(response.headers.get(name)).toBe("from-client-1");
  expect((await backend.nextRequest()).header("x-request-id")).toBe("from-client-1");
  const entry = await gate.waitForLog(({ requestId }) => requestId === "from-client-1");
  expect(entry).toMatchObject({ message: "Request ended", address: "198.51.100.7", status: 200 });
});

test("the log and the backend have the trace that the client is part of, and none that is malformed", async () => {
  const trace = "4bf92f3577b34da6a3ce929d0e0e4736";
  const wholes = [`00-${trace}-00f067aa0ba902b7-01`, `cc-${trace}-00f067aa0ba902b7-01-more`];
  const others = [
    "",
    `00-${trace}`,
    `00-${"0".repeat(32)}-00f067aa0ba902b7-01`,
    `00-${trace.toUpperCase()}-00f067aa0ba902b7-01`,
  ];
  for (const [n, traceparent] of [...wholes, ...others].entries()) {
    await get("/v1/models", { "x-request-id": `trace-${n}`, traceparent });
    expect((await backend.nextRequest()).header("traceparent") ?? "").toBe(traceparent);
    const entry = await gate.waitForLog(({ requestId }) => requestId === `trace-${n}`);
    expect(entry["traceId"]).toBe(n < wholes.length ? trace : undefined);
  }
  await pollUntil(async () => (await gate.admin.listRequests("?request_id=trace-5")).length > 0);
  expect(await gate.admin.listRequests(`?trace_id=${trace}`)).toMatchObject([
    { request_id: "trace-1", trace_id: trace },
    { request_id: "trace-0", trace_id: trace },
  ]);
});

test("an id of 128 visible ASCII characters is kept", async () => {
  const id = "~".repeat(128);
  expect((await get("/v1/models", { "x-request-id": id })).headers.get("x-request-id")).toBe(id);
});

test.each(["", "two words", "é", "x".repeat(129)])(
  "a request without a usable id (%j) gets a new one",
  async (given) => {
    const response = await get("/v1/models", given === "" ? {} : { "x-request-id": given });
    const id = response.headers.get("x-request-id");
    expect(id).toMatch(/^[\da-f-]{36}$/);
    expect((await backend.nextRequest()).header("x-request-id")).toBe(id ?? "");
  },
);

describe("x-tollgate-debug", () => {
  const debugOf = ({ headers }: Response): (string | null)[] =>
    ["backend", "sends", "reason"].map((name) => headers.get(`x-tollgate-${name}`));

  test("tells who asks where the request went, and is not forwarded", async () => {
    const response = await get("/v1/models", { "x-tollgate-debug": "1" });
    expect(debugOf(response)).toEqual([new URL(backend.url).host, "1", "only"]);
    expect((await backend.nextRequest()).header("x-tollgate-debug")).toBeUndefined();
  });

  test.each(["", "0", "true"])("tells nothing if it is %j", async (value) => {
    expect(debugOf(await get("/v1/models", { "x-tollgate-debug": value }))).toEqual([null, null, null]);
  });

  test("tells nothing of a request that was not sent, and of a failed one where it went", async () => {
    const refused = await get("/v1/models", { "x-api-key": "wrong", "x-tollgate-debug": "1" });
    expect([refused.status, ...debugOf(refused)]).toEqual([401, null, null, null]);
    const failed = await get("/v1/files/1", { "x-tollgate-debug": "1", "x-simulate": "reset@0" });
    expect([failed.status, debugOf(failed)[0]]).toEqual([502, new URL(backend.url).host]);
  });
});

test("errors have the id too, under /v1/messages in their bodies, where Anthropic's SDKs read it", async () => {
  for (const path of ["/v1/messages", "/v1/messages/count_tokens", "//v1/messages", "/v1/chat/completions"]) {
    const refused = await get(path, { "x-api-key": "wrong", "x-request-id": "mine" });
    const { request_id: id } = (await refused.json()) as { request_id?: string };
    expect([path, id]).toEqual([path, path.includes("messages") ? "mine" : undefined]);
  }
  expect((await get("/nothing", { "request-id": "mine" })).headers.get("request-id")).not.toBe("mine");
  const wrongKey = await get("/v1/models", { "x-api-key": "wrong", "x-request-id": "refused-1" });
  expect([wrongKey.status, wrongKey.headers.get("x-request-id")]).toEqual([401, "refused-1"]);
  expect(wrongKey.headers.get("x-should-retry")).toBe("false");
});

test("a key in a path is masked in the log", async () => {
  await get(`/v1/${gate.key}/models`, { "x-request-id": "key-in-path" });
  const entry = await gate.waitForLog(({ requestId }) => requestId === "key-in-path");
  expect(entry["path"]).toBe("/v1/***/models");
  expect(JSON.stringify(gate.log)).not.toContain(gate.key);
});

test("the log names the model asked for and the one sent", async () => {
  await using renaming = await startTollgate({ PROXY_UPSTREAM_URL: backend.url, PROXY_ALIAS_MODEL: "served" });
  for (const model of ["claude-x", "other", undefined]) {
    await renaming.send("/v1/embeddings", { model, input: "a" }, { headers: { "x-request-id": `model-${model}` } });
  }
  const logged = async (id: string) => {
    const { modelAsked, modelSent } = await renaming.waitForLog(({ requestId }) => requestId === id);
    return [modelAsked, modelSent];
  };
  expect(await logged("model-claude-x")).toEqual(["claude-x", "served"]);
  expect(await logged("model-other")).toEqual(["other", "other"]);
  expect(await logged("model-undefined")).toEqual([undefined, undefined]);
});
