import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, statSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { findFreePort } from "../support/free-port.ts";
import { logIn } from "../support/admin-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { type Program, type ProgramEnvironment, runProgram, startProgram } from "../support/program.ts";
import { type Simulator, startSimulator } from "../support/simulator/simulator.ts";
import { createTempFolder, type TempFolder } from "../support/temp-folder.ts";

let folder: TempFolder;
let backend: Simulator;
beforeAll(() => {
  folder = createTempFolder();
  backend = startSimulator();
});
afterAll(() => {
  backend.stop();
  folder.remove();
});

const body = JSON.stringify({ model: "m", stream: true, max_tokens: 6, messages: [{ role: "user", content: "Hi" }] });
const post = (key: string, script = "") => ({
  method: "POST",
  headers: { "x-api-key": key, "content-type": "application/json", "x-simulate": script },
  body,
});

/** @returns the first line of the response */
const sendRaw = (path: string, bytes: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect(path, () => socket.write(bytes));
    socket.once("data", (data) => {
      resolve(data.toString().split("\r\n", 1)[0] ?? "");
      socket.destroy();
    });
    socket.once("error", reject);
  });

describe("HOST=unix:", () => {
  /** The console has a port, so that a key can be created. */
  const start = (path: string, environment: ProgramEnvironment = {}): Promise<Program> =>
    startProgram({
      HOST: `unix:${path}`,
      ADMIN_PORT: String(findFreePort()),
      PROXY_UPSTREAM_URL: backend.url,
      ADMIN_PASSWORD: "password",
      LOG_FORMAT: "json",
      ...environment,
    });
  const createKey = async (program: Program) =>
    (await (await logIn(program.adminUrl, "admin", "password")).createKey("test")).key;
  const send = (unix: string, path: string, init: RequestInit = {}) => fetch(`http://gate${path}`, { ...init, unix });

  test("serves streams on a socket that every user may connect to, and removes it at the end", async () => {
    const path = folder.file("a.sock");
    const program = await start(path);
    expect(statSync(path).mode & 0o777).toBe(0o666);
    expect(program.stdout()).toContain(`"proxy":"unix:${path}/v1"`);
    const key = await createKey(program);
    expect(await (await send(path, "/v1/chat/completions", post(key))).text()).toEndWith("data: [DONE]\n\n");
    expect(await sendRaw(path, `GET /v1/%2e%2e/x HTTP/1.1\r\nHost: gate\r\nX-Api-Key: ${key}\r\n\r\n`)).toBe(
      "HTTP/1.1 400 Bad Request",
    );
    expect(await sendRaw(path, "GET / HTTP/1.1\r\nHost:\r\n\r\n")).toBe("HTTP/1.1 400 Bad Request");
    expect((await send(path, "/v1/models")).status).toBe(401);
    expect(await program.stop()).toBe(0);
    expect(existsSync(path)).toBeFalse();
  });

  test.each([
    ["0600", 0o600],
    ["660", 0o660],
  ])("gives the socket the mode that SOCKET_MODE=%s says", async (mode, expected) => {
    const path = folder.file("mode.sock");
    const program = await start(path, { SOCKET_MODE: mode });
    expect(statSync(path).mode & 0o777).toBe(expected);
    await program.stop();
  });

  test("lets a running stream end at a stop, and ends the backend's request if a client leaves", async () => {
    const path = folder.file("b.sock");
    const program = await start(path);
    const key = await createKey(program);
    backend.clear();
    const left = await send(path, "/v1/chat/completions", post(key, "gap=forever@2"));
    const reader = left.body?.getReader();
    await reader?.read();
    await reader?.cancel();
    expect((await (await backend.nextRequest()).ended).how).toBe("aborted");
    const response = await send(path, "/v1/chat/completions", post(key, "gap=500ms@3"));
    const stopped = program.stop();
    expect(await response.text()).toEndWith("data: [DONE]\n\n");
    expect(await stopped).toBe(0);
  });

  test("serves both sides on the socket without ADMIN_PORT, and counts logins of the client's address", async () => {
    const path = folder.file("c.sock");
    const settings = { HOST: `unix:${path}`, TRUST_PROXY: "1", LOG_FORMAT: "json" };
    const program = await startProgram(settings);
    expect((await send(path, "/login")).status).toBe(200);
    const login = await send(path, "/api/login", {
      method: "POST",
      headers: { "content-type": "application/json", "x-forwarded-for": "203.0.113.9" },
      body: '{"username":"admin","password":"wrong"}',
    });
    expect(login.status).toBe(401);
    await pollUntil(() => program.stdout().includes('"address":"203.0.113.9"'));
    expect(await runProgram(["check", "--quick"], settings)).toEqual({ status: 0, stdout: "ok\n", stderr: "" });
    await program.stop();
  });

  test("takes over the socket of a program that was killed", async () => {
    const path = folder.file("d.sock");
    await (await start(path)).stop("SIGKILL");
    expect(existsSync(path)).toBeTrue();
    const program = await start(path);
    expect((await send(path, "/v1/models")).status).toBe(401);
    await program.stop();
  });

  test("refuses a socket that another program serves, and a file that is none, and leaves both alone", async () => {
    const path = folder.file("e.sock");
    const other = createServer().listen(path);
    expect(await runProgram(["serve"], { HOST: `unix:${path}` })).toEqual({
      status: 1,
      stdout: "",
      stderr: `tollgate: ${path} is in use by another program\n`,
    });
    expect(existsSync(path)).toBeTrue();
    other.close();
    const file = folder.file("precious");
    writeFileSync(file, "precious");
    expect(await runProgram(["serve"], { HOST: `unix:${file}` })).toMatchObject({
      status: 1,
      stderr: `tollgate: ${file} exists and is not a socket\n`,
    });
    expect(await Bun.file(file).text()).toBe("precious");
  });

  test("reports a folder that does not exist", async () => {
    const { status, stderr } = await runProgram(["serve"], { HOST: `unix:${folder.file("none/x.sock")}` });
    expect(status).toBe(1);
    expect(stderr).toStartWith(`tollgate: cannot listen on unix:${folder.file("none/x.sock")}`);
  });

  test.each([
    [{ HOST: "unix:relative" }, 'HOST: "unix:relative" is not allowed'],
    [{ HOST: `unix:/${"x".repeat(107)}` }, "HOST: "],
    [{ HOST: "unix:/x", PROCESSES: "2" }, "PROCESSES: several processes cannot share a UNIX socket"],
    [{ HOST: "unix:/x", TLS_CERT: "c", TLS_KEY: "k" }, "TLS_CERT: has no effect on a UNIX socket"],
    [{ SOCKET_MODE: "rw" }, 'SOCKET_MODE: "rw" is not allowed; use a mode in octal'],
    [{ SOCKET_MODE: "7777" }, 'SOCKET_MODE: "7777" is not allowed'],
    [{ ADMIN_HOST: "unix:/x", ADMIN_PORT: "1" }, 'ADMIN_HOST: "unix:/x" is not allowed'],
    [{ TLS_CERT: "c" }, "TLS_KEY: must be set together with TLS_CERT"],
    [{ PROXY_UPSTREAM_URL: "unix:x" }, 'PROXY_UPSTREAM_URL: "unix:x" is not allowed'],
  ])("rejects %p", async (settings, problem) => {
    const { status, stderr } = await runProgram(["serve"], settings);
    expect(status).toBe(2);
    expect(stderr).toStartWith(`tollgate: ${problem}`);
  });
});

describe("PROXY_UPSTREAM_URL=unix:", () => {
  test("forwards to a backend on a socket, streams, and reports when it is gone", async () => {
    const path = folder.file("backend.sock");
    const seen: string[] = [];
    const server = Bun.serve({
      unix: path,
      async fetch(request) {
        seen.push(`${request.method} ${new URL(request.url).pathname} ${request.headers.get("host")}`);
        if (new URL(request.url).pathname === "/v1/models") return Response.json({ object: "list", data: [] });
        return await fetch(`${backend.url}/v1/chat/completions`, {
          method: "POST",
          headers: request.headers,
          body: await request.text(),
        });
      },
    });
    const settings = { PROXY_UPSTREAM_URL: `unix:${path}`, ADMIN_PASSWORD: "password", LOG_FORMAT: "json" };
    const program = await startProgram(settings);
    const { key } = await (await logIn(program.adminUrl, "admin", "password")).createKey("test");
    const complete = () => fetch(`${program.url}/v1/chat/completions`, post(key));
    for (let n = 0; n < 3; n++) expect(await (await complete()).text()).toEndWith("data: [DONE]\n\n");
    expect(seen).toContain("POST /v1/chat/completions localhost");
    const ready = await (await fetch(`${program.adminUrl}/readyz`)).json();
    expect(ready).toEqual({ status: "ready", states: [] });
    const checked = await runProgram(["check"], { ...settings, DATA_DIR: program.dataDir });
    expect(checked.stdout).toContain(`unix:${path} responds 200 to /v1/models`);
    await server.stop(true);
    const failed = await complete();
    expect(failed.status).toBe(502);
    expect(await failed.text()).toContain("upstream_unreachable");
    await program.stop();
    expect(program.stdout()).not.toContain("Backend not reachable");
  });

  test("warns at the start if nothing listens there", async () => {
    const path = folder.file("nothing.sock");
    const program = await startProgram({ PROXY_UPSTREAM_URL: `unix:${path}`, LOG_FORMAT: "json" });
    await pollUntil(() => program.stdout().includes("Backend not reachable"));
    expect(program.stdout()).toContain(`"backend":"unix:${path}"`);
    await program.stop();
  });
});
