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

async function readStates(): Promise<string[]> {
  // Longer than a result is cached.
  now += 60_000;
  const response = await fetch(`${gate.adminUrl}/readyz`);
  expect(response.status).toBe(200);
  const { states } = (await response.json()) as { states: { kind: string }[] };
  // The clock of this test steps.
  return states.map(({ kind }) => kind).filter((kind) => kind !== "clock_stepped");
}

test.each<[string, string[]]>([
  ["status=200", []],
  ["status=401", []],
  ["status=404", []],
  ["status=302; header=location: http://127.0.0.1:1/", []],
  ["status=500", ["backend_out"]],
  ["status=503", ["backend_out"]],
  ["reset-before-head", ["backend_out"]],
  ["garbage", ["backend_out"]],
])("a backend with %s counts as %j in /readyz", async (script, states) => {
  backend.scriptNext(script);
  expect(await readStates()).toEqual(states);
});

test("the backend is asked for its models, with its own key, over a connection that is not kept", async () => {
  backend.clear();
  await readStates();
  const request = await backend.nextRequest();
  expect([request.method, request.target]).toEqual(["GET", "/prefix/v1/models"]);
  expect(request.header("authorization")).toBe("Bearer backend-key");
  const { connection } = await backend.waitFor(({ type }) => type === "closed");
  expect(connection).toBe((await backend.waitFor(({ type }) => type === "request")).connection);
});
