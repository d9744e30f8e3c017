import { describe, expect, test } from "bun:test";
import { connect } from "node:tls";
import { startSimulator } from "../support/simulator/simulator.ts";
import { createAuthority, type KeyFiles, replaceFiles, whyNoOpenssl } from "../support/authority.ts";
import { whyNoCurl } from "../support/curl.ts";
import { findFreePort } from "../support/free-port.ts";
import { readCertificate } from "../../src/runtime/certificate.ts";
import { pollUntil } from "../support/poll-until.ts";
import { type Program, type ProgramEnvironment, runProgram, startProgram } from "../support/program.ts";
import { shared } from "../support/shared.ts";

const settingsOf = ({ certFile, keyFile }: KeyFiles) => ({ TLS_CERT: certFile, TLS_KEY: keyFile });

/** The serial number of the certificate that a new connection gets. */
const serialAt = ({ url }: Program, ca: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port: Number(new URL(url).port), ca }, () => {
      resolve(socket.getPeerCertificate().serialNumber);
      socket.destroy();
    });
    socket.once("error", reject);
  });

describe.skipIf(whyNoOpenssl !== undefined)("with TLS_CERT and TLS_KEY, the program", () => {
  const authority = shared(() => createAuthority());
  const backend = shared(() => startSimulator());

  const request = (url: string, init: RequestInit = {}): Promise<Response> =>
    fetch(url, { ...init, tls: { ca: authority.ca } });

  const start = (files: KeyFiles, environment: ProgramEnvironment = {}): Promise<Program> =>
    startProgram({
      PROXY_UPSTREAM_URL: backend.url,
      ADMIN_PASSWORD: "password",
      LOG_FORMAT: "json",
      ...settingsOf(files),
      ...environment,
    });

  async function createKey({ adminUrl }: Program): Promise<string> {
    const json = { "content-type": "application/json" };
    const body = JSON.stringify({ username: "admin", password: "password" });
    const login = await request(`${adminUrl}/api/login`, { method: "POST", headers: json, body });
    const { csrf_token: token } = (await login.json()) as { csrf_token: string };
    const [cookie = ""] = login.headers.getSetCookie();
    expect(cookie).toContain("Secure");
    const headers = { ...json, cookie: cookie.split(";", 1)[0] ?? "", "x-csrf-token": token };
    const created = await request(`${adminUrl}/api/keys`, { method: "POST", headers, body: '{"name":"test"}' });
    return ((await created.json()) as { key: string }).key;
  }

  const stream = ({ url }: Program, key: string, script: string): Promise<Response> =>
    request(`${url}/v1/chat/completions`, {
      method: "POST",
      // A pooled connection may be one that ends with the certificate that it began with.
      keepalive: false,
      headers: { "x-api-key": key, "content-type": "application/json", "x-simulate": script },
      body: JSON.stringify({ model: "m", stream: true, max_tokens: 6, messages: [{ role: "user", content: "Hi" }] }),
    });

  test("serves both sides over HTTPS, and browsers shall use nothing else for the console", async () => {
    const ports = { PORT: String(findFreePort()), ADMIN_PORT: String(findFreePort()) };
    const program = await start(authority.sign("both"), ports);
    expect([program.url, program.adminUrl]).toEqual([
      `https://127.0.0.1:${ports.PORT}`,
      `https://127.0.0.1:${ports.ADMIN_PORT}`,
    ]);
    const key = await createKey(program);
    expect(await (await stream(program, key, "")).text()).toEndWith("data: [DONE]\n\n");
    const hsts = async (url: string) => (await request(url)).headers.get("strict-transport-security");
    expect(await hsts(`${program.adminUrl}/login`)).toBe("max-age=31536000");
    expect(await hsts(`${program.adminUrl}/api/me`)).toBe("max-age=31536000");
    expect(await hsts(`${program.url}/v1/models`)).toBeNull();
    expect(program.stdout()).toContain(`"console":"https://127.0.0.1:${ports.ADMIN_PORT}"`);
    expect((await runProgram(["check", "--quick"], { ...settingsOf(authority.sign("check")), ...ports })).stdout).toBe(
      "ok\n",
    );
    await program.stop();
  });

  test("sends no such header over HTTP", async () => {
    const program = await startProgram();
    expect((await fetch(`${program.adminUrl}/login`)).headers.has("strict-transport-security")).toBeFalse();
    await program.stop();
  });

  test.skipIf(whyNoCurl !== undefined)(
    "is reached by a client that trusts its authority, and by no other",
    async () => {
      const program = await start(authority.sign("curl"));
      const curl = (...args: string[]) =>
        Bun.spawnSync(["curl", "--silent", "--max-time", "5", ...args, `${program.url}/healthz`]);
      expect(curl("--cacert", authority.caFile).stdout.toString()).toContain("ok");
      expect(curl().exitCode).toBe(60);
      expect(Bun.spawnSync(["curl", "--silent", `${program.url.replace("https", "http")}/healthz`]).exitCode).not.toBe(
        0,
      );
      expect(curl("--cacert", authority.caFile, "--tls-max", "1.1", "--ciphers", "DEFAULT@SECLEVEL=0").exitCode).toBe(
        35,
      );
      await program.stop();
    },
  );

  test("serves a renewed certificate, while a response that began before goes on", async () => {
    const files = authority.sign("first");
    const program = await start(files);
    const key = await createKey(program);
    const before = await serialAt(program, authority.ca);
    const response = await stream(program, key, "gap=1500ms@3");
    const reader = response.body?.getReader();
    const decoder = new TextDecoder();
    let text = decoder.decode((await reader?.read())?.value);
    replaceFiles(files, authority.sign("second"));
    await pollUntil(async () => (await serialAt(program, authority.ca)) !== before);
    expect(program.stdout()).toContain('"message":"Certificate reloaded"');
    for (let part = await reader?.read(); part?.done === false; part = await reader?.read()) {
      text += decoder.decode(part.value);
    }
    expect(text).toEndWith("data: [DONE]\n\n");
    expect(await (await stream(program, key, "")).text()).toEndWith("data: [DONE]\n\n");
    expect(await program.stop()).toBe(0);
  });

  test("is warned of before its end, and its end is a metric", async () => {
    const files = authority.sign("short");
    const program = await start(files, { METRICS_TOKEN: "scrape" });
    const certificateEnd = async (): Promise<number> => {
      const headers = { authorization: "Bearer scrape" };
      const response = await fetch(`${program.url}/metrics`, { headers, tls: { rejectUnauthorized: false } });
      const [, value] = /^tollgate_certificate_not_after_timestamp_seconds (.+)$/m.exec(await response.text()) ?? [];
      return Number(value);
    };
    expect(await certificateEnd()).toBe(readCertificate(files).validTo.getTime() / 1000);
    const ready = await fetch(`${program.url}/readyz`, { tls: { rejectUnauthorized: false } });
    expect(await ready.json()).toMatchObject({ states: [{ kind: "certificate" }] });
    await program.stop();
  });

  test("waits at its stop for a response that began with an earlier certificate", async () => {
    const files = authority.sign("third");
    const program = await start(files);
    const key = await createKey(program);
    const before = await serialAt(program, authority.ca);
    const response = await stream(program, key, "gap=3500ms@3");
    replaceFiles(files, authority.sign("fourth"));
    await pollUntil(async () => (await serialAt(program, authority.ca)) !== before);
    const stopped = program.stop();
    expect(await response.text()).toEndWith("data: [DONE]\n\n");
    expect(await stopped).toBe(0);
  });

  test.each<[string, (files: KeyFiles) => Promise<unknown>]>([
    ["the new files do not fit", ({ keyFile }) => Bun.write(keyFile, "no key")],
    [
      "a later one in the new file is damaged",
      async ({ certFile }) => Bun.write(certFile, (await Bun.file(certFile).text()) + authority.ca.slice(0, 200)),
    ],
  ])("keeps its certificate if %s", async (_, damage) => {
    const files = authority.sign("kept");
    const program = await start(files);
    const before = await serialAt(program, authority.ca);
    await damage(files);
    const message = "Certificate files changed, and the earlier ones stay in use";
    await pollUntil(() => program.stdout().includes(message));
    expect(program.stdout().split(message)).toHaveLength(2);
    expect(program.stdout()).not.toContain("no key");
    expect(await serialAt(program, authority.ca)).toBe(before);
    expect(await program.stop()).toBe(0);
    expect(program.stderr()).toBe("");
  });

  test.skipIf(process.platform !== "linux")("serves it in each of several processes", async () => {
    const files = authority.sign("several");
    const program = await start(files, { PROCESSES: "2" });
    const before = await serialAt(program, authority.ca);
    replaceFiles(files, authority.sign("renewed"));
    // The kernel chooses the process of each connection.
    const listSerials = () => Promise.all(Array.from({ length: 20 }, () => serialAt(program, authority.ca)));
    const serials = await pollUntil(async () => {
      const found = await listSerials();
      return found.includes(before) ? undefined : found;
    });
    expect(new Set(serials).size).toBe(1);
    await program.stop();
  });

  test("does not start with files that do not fit, and names the setting", async () => {
    const [one, other] = [authority.sign("one"), authority.sign("other")];
    const wrong = { TLS_CERT: one.certFile, TLS_KEY: other.keyFile };
    expect(await runProgram(["serve"], wrong)).toEqual({
      status: 2,
      stdout: "",
      stderr: `tollgate: TLS_KEY: "${other.keyFile}" is not the key of the certificate (handbook: HTTPS without a web server)\n`,
    });
    const unreadable = { "/nowhere.pem": "ENOENT", [`${one.keyFile}/cert.pem`]: "ENOTDIR" };
    for (const [TLS_CERT, code] of Object.entries(unreadable)) {
      expect(await runProgram(["serve"], { ...settingsOf(one), TLS_CERT })).toMatchObject({
        status: 2,
        stderr: `tollgate: TLS_CERT: "${TLS_CERT}" cannot be read (${code}) (handbook: HTTPS without a web server)\n`,
      });
    }
    await Bun.write(one.certFile, (await Bun.file(one.certFile).text()) + authority.ca.slice(0, 200));
    expect(await runProgram(["serve"], settingsOf(one))).toEqual({
      status: 2,
      stdout: "",
      stderr: `tollgate: TLS_CERT: "${one.certFile}": certificate 2 of the file cannot be read (handbook: HTTPS without a web server)\n`,
    });
  });
});
