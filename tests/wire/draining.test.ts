import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { type Simulator, startSimulator } from "../support/simulator/simulator.ts";
import { logIn } from "../support/admin-client.ts";
import { clientOf } from "../support/client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { type Program, startProgram } from "../support/program.ts";
import { createTempFolder } from "../support/temp-folder.ts";

const password = "correct horse battery staple";

interface Listed {
  file_hash: string;
  instances: { name: string; file_hash: string }[];
  backends: { name: string; state: string; requests_1h: number; models: string[] }[];
}

describe.each(["1", "2"])("with %s processes", (processes) => {
  const folder = createTempFolder();
  let a: Simulator;
  let b: Simulator;
  let program: Program;
  let key: string;
  let admin: Awaited<ReturnType<typeof logIn>>;
  const environment = () => ({
    MODELS_FILE: folder.file("models.yaml"),
    DATA_DIR: folder.path,
    ADMIN_PASSWORD: password,
    PROCESSES: processes,
  });
  beforeAll(async () => {
    a = startSimulator();
    b = startSimulator();
    writeFileSync(
      folder.file("models.yaml"),
      `backends:\n  gpu-a: { url: "${a.url}" }\n  gpu-b: { url: "${b.url}" }\nmodels:\n  chat: { backends: [gpu-a, gpu-b] }\n`,
    );
    program = await startProgram(environment());
    admin = await logIn(program.adminUrl, "admin", password);
    ({ key } = await admin.createKey("caller"));
  });
  afterAll(async () => {
    await program.stop("SIGKILL");
    for (const one of [a, b]) one.stop();
    folder.remove();
  });

  const list = (): Promise<Listed> => admin.expectOk<Listed>("GET", "/api/backends");
  const ask = async (): Promise<string | null> => {
    const headers = { "x-tollgate-debug": "1", connection: "close" };
    const body = { model: "chat", messages: [{ role: "user", content: "Hi" }] };
    const response = await clientOf(program.url, key).send("/v1/chat/completions", body, { headers });
    await response.text();
    expect(response.status).toBe(200);
    return response.headers.get("x-tollgate-backend");
  };
  const backendsOf = async (count: number): Promise<(string | null)[]> =>
    [...new Set(await Promise.all(Array.from({ length: count }, ask)))].toSorted((one, other) =>
      String(one).localeCompare(String(other)),
    );

  test("a backend that drains gets no new requests from any process, also after a restart", async () => {
    const drain = (draining: boolean) => admin.expectOk<object>("PATCH", "/api/backends/gpu-a", { draining });
    expect(await backendsOf(8)).toEqual(["gpu-a", "gpu-b"]);
    await drain(true);
    await pollUntil(async () => (await list()).backends[0]?.state === "draining");
    expect(await backendsOf(8)).toEqual(["gpu-b"]);

    await program.stop();
    program = await startProgram(environment());
    // Before anybody had to wait for that.
    expect(await backendsOf(8)).toEqual(["gpu-b"]);
    admin = await logIn(program.adminUrl, "admin", password);
    expect((await list()).backends[0]?.state).toBe("draining");

    await drain(false);
    await pollUntil(async () => (await list()).backends[0]?.state === "in");
    await pollUntil(async () => (await backendsOf(8)).includes("gpu-a"));
  });

  test("every process is listed with its file, and each backend with what it was sent", async () => {
    await pollUntil(async () => (await list()).instances.length === Number(processes));
    const { file_hash: hash, instances } = await list();
    expect(hash).toMatch(/^[\da-f]{64}$/);
    expect(new Set(instances.map((one) => one.file_hash))).toEqual(new Set([hash]));
    expect(new Set(instances.map(({ name }) => name)).size).toBe(Number(processes));
    await pollUntil(async () => (await list()).backends.every(({ requests_1h: count }) => count > 0));
    expect((await list()).backends.map(({ models }) => models)).toEqual([["chat"], ["chat"]]);
  });
});
