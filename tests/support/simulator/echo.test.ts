import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Simulator, startSimulator } from "./simulator.ts";

let simulator: Simulator;
beforeAll(() => {
  simulator = startSimulator();
});
afterAll(() => simulator.stop());

test("a body is returned byte for byte with its type", async () => {
  const body = Uint8Array.from({ length: 1000 }, (_, index) => index);
  const headers = { "content-type": "image/png" };
  const response = await fetch(`${simulator.url}/v1/images`, { method: "POST", headers, body });
  expect(response.headers.get("content-type")).toBe("image/png");
  expect(new Uint8Array(await response.arrayBuffer())).toEqual(body);
});

test("a request without a body is described", async () => {
  const response = await fetch(`${simulator.url}/v1/files/1?limit=2`, { method: "DELETE", headers: { "x-one": "1" } });
  const echoed = (await response.json()) as { headers: unknown };
  expect(echoed).toMatchObject({ method: "DELETE", target: "/v1/files/1?limit=2", body_bytes: 0 });
  expect(echoed.headers).toContainEqual(["x-one", "1"]);
});
