import { expect, test } from "bun:test";
import { startSimulator } from "../support/simulator/simulator.ts";
import { shared } from "../support/shared.ts";
import { startTollgate } from "../support/tollgate.ts";

let now = Date.now();
const backend = shared(() => startSimulator());
const gate = shared(() =>
  startTollgate(
    { PROXY_UPSTREAM_URL: `${backend.url}/prefix`, PROXY_UPSTREAM_API_KEY: "backend-key" },
    { clock: () => now },
  ),
);

async function readUpstream(): Promise<unknown> {
  // Longer than a result is cached.
  now += 60_000;
  const response = await fetch(`${gate.adminUrl}/readyz`);
  expect(response.status).toBe(200);
  const { upstream } = (await response.json()) as { upstream: unknown };
  return upstream;
}

test.each([
  ["status=200", "ok"],
  ["status=401", "ok"],
  ["status=404", "ok"],
  ["status=302; header=location: http://127.0.0.1:1/", "ok"],
  ["status=500", "not answering"],
  ["status=503", "not answering"],
  ["reset-before-head", "not answering"],
  ["garbage", "not answering"],
])("a backend with %s counts as %s in /readyz", async (script, upstream) => {
  backend.scriptNext(script);
  expect(await readUpstream()).toBe(upstream);
});

test("the backend is asked for its models, with its own key, over a connection that is not kept", async () => {
  backend.clear();
  await readUpstream();
  const request = await backend.nextRequest();
  expect([request.method, request.target]).toEqual(["GET", "/prefix/v1/models"]);
  expect(request.header("authorization")).toBe("Bearer backend-key");
  const { connection } = await backend.waitFor(({ type }) => type === "closed");
  expect(connection).toBe((await backend.waitFor(({ type }) => type === "request")).connection);
});
