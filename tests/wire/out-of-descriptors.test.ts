import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { type Simulator, startSimulator } from "../../src/simulator/simulator.ts";
import { logIn } from "../support/admin-client.ts";
import { type Program, startProgram } from "../support/program.ts";
import { connectRaw } from "../support/raw-client.ts";

let backend: Simulator;
let program: Program;
beforeAll(async () => {
  backend = startSimulator();
  program = await startProgram({ PROXY_UPSTREAM_URL: backend.url, ADMIN_PASSWORD: "password" });
});
afterAll(async () => {
  await program.stop();
  backend.stop();
});

const prlimit = Bun.which("prlimit");

test.skipIf(prlimit === null)(
  "a program at its limit of open files refuses some requests, and afterwards serves and counts normally",
  async () => {
    const admin = await logIn(program.adminUrl, "admin", "password");
    const { key } = await admin.createKey("test");
    const body = JSON.stringify({
      model: "m",
      stream: true,
      max_tokens: 3,
      messages: [{ role: "user", content: "Hi" }],
    });
    const headers = { "x-api-key": key, "Content-Type": "application/json", "x-simulate": "usage=3,4; gap=300ms@2" };
    /** The status of a complete response, else 0. */
    const post = async (): Promise<number> => {
      const client = await connectRaw(program.url);
      client.request("POST", "/v1/messages", headers, body);
      const isWhole = (await client.ended()) === "complete";
      client.close();
      return isWhole ? (await client.head()).status : 0;
    };
    const open = readdirSync(`/proc/${program.pid}/fd`).length;
    Bun.spawnSync([String(prlimit), "--pid", String(program.pid), `--nofile=${open + 21}:`]);

    const statuses = await Promise.all(Array.from({ length: 40 }, post));
    const served = statuses.filter((status) => status === 200).length;
    // A connection that cannot be accepted waits in the kernel's queue. After an accept, no descriptor may be left for
    // the connection to the backend.
    expect(statuses).toContain(502);
    expect(statuses.filter((status) => status !== 200 && status !== 502)).toEqual([]);

    expect(await post()).toBe(200);
    const [counted] = await admin.listKeys();
    expect(counted).toMatchObject({
      total_request_count: served + 1,
      total_input_tokens: 3 * (served + 1),
      total_output_tokens: 4 * (served + 1),
    });
  },
  30_000,
);
