import { describe, expect, test } from "bun:test";
import { createServer } from "node:net";
import { findFreePort } from "../support/free-port.ts";
import { logIn } from "../support/admin-client.ts";
import { runProgram, startProgram } from "../support/program.ts";
import { createTempFolder } from "../support/temp-folder.ts";

describe("the program", () => {
  test("lists every error in its environment and exits with 2", async () => {
    const { status, stdout, stderr } = await runProgram(["serve"], {
      PORT: "http",
      TRUST_PROXY: "-1",
      SECRET_KEY: "short",
    });
    expect(status).toBe(2);
    expect(stdout).toBe("");
    expect(stderr.trimEnd().split("\n").toSorted()).toEqual([
      'tollgate: PORT: "http" is not allowed; use a whole number from 0 to 65535',
      "tollgate: SECRET_KEY: its value is not allowed; use at least 16 characters, 8 of them different",
      'tollgate: TRUST_PROXY: "-1" is not allowed; use a whole number from 0 to 100',
    ]);
  });

  test("creates one database if six processes start on a new folder at one moment", async () => {
    using folder = createTempFolder();
    const environment = { DATA_DIR: folder.file("new"), SECRET_KEY: "0123456789abcdef", ADMIN_PASSWORD: "password" };
    const programs = await Promise.all(Array.from({ length: 6 }, () => startProgram(environment)));
    const names = await Promise.all(
      programs.map(async ({ adminUrl }, n) => {
        const admin = await logIn(adminUrl, "admin", "password");
        return (await admin.createKey(`key ${n}`)).name;
      }),
    );
    const [first] = programs;
    const admin = await logIn(first?.adminUrl ?? "", "admin", "password");
    expect((await admin.listKeys()).map(({ name }) => name).toSorted()).toEqual(names.toSorted());
    expect(await Promise.all(programs.map((program) => program.stop()))).toEqual([0, 0, 0, 0, 0, 0]);
  });

  test.each([
    [["--help"], 0],
    [["serve", "--help"], 0],
    [["--version"], 0],
    [["-V"], 0],
    [["version"], 0],
    [["no-such-command"], 2],
    [["serve", "--port", "1"], 2],
    [["--port", "1"], 2],
    [["toString"], 2],
  ] as [string[], number][])("called with %p exits with %i", async (args, status) => {
    const result = await runProgram(args);
    expect(result.status).toBe(status);
    const output = status === 0 ? result.stdout : result.stderr;
    expect(output).not.toBe("");
    expect(output).not.toContain("    at ");
    if (status === 2) expect(result.stderr.trimEnd().split("\n")).toHaveLength(1);
  });

  test("serves by default and uses the environment's settings", async () => {
    const program = await startProgram({ ADMIN_USERNAME: "root" }, []);
    expect((await fetch(`${program.url}/v1/models`)).status).toBe(401);
    expect(await program.stop()).toBe(0);
  });

  test("serves each side only on its own port if ADMIN_PORT is set", async () => {
    const admin = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => admin.once("listening", resolve));
    const { port } = admin.address() as { port: number };
    await new Promise((resolve) => admin.close(resolve));
    const program = await startProgram({ ADMIN_PORT: String(port) });
    const status = async (url: string): Promise<number> => (await fetch(url)).status;
    expect(await status(`${program.url}/v1/models`)).toBe(401);
    for (const path of ["/api/me", "/", "/healthz", "/metrics", "/assets/x.js"]) {
      expect([path, await status(program.url + path)]).toEqual([path, 404]);
    }
    expect(await status(`${program.adminUrl}/api/me`)).toBe(401);
    expect(await status(`${program.adminUrl}/healthz`)).toBe(200);
    for (const path of ["/v1", "/v1/models", "/v1/a/b"]) {
      expect([path, await status(program.adminUrl + path)]).toEqual([path, 404]);
    }
    await program.stop();
  });

  test("with ADMIN_PORT, serves the console on loopback only, unless ADMIN_HOST is set", async () => {
    const reaches = (url: string): Promise<boolean> =>
      fetch(url).then(
        () => true,
        () => false,
      );
    for (const [adminHost, elsewhere] of [
      ["", false],
      ["0.0.0.0", true],
    ] as const) {
      const port = String(findFreePort());
      const program = await startProgram({ HOST: "0.0.0.0", ADMIN_PORT: port, ADMIN_HOST: adminHost });
      // Another address of this machine.
      expect(await reaches(`${program.url.replace("127.0.0.1", "127.0.0.2")}/v1/models`)).toBe(true);
      expect(await reaches(`http://127.0.0.2:${port}/healthz`)).toBe(elsewhere);
      await program.stop();
    }
  });

  test("warns in a line about a variable that looks like a misspelt setting", async () => {
    const program = await startProgram({ PROXY_UPSTRAEM_URL: "http://127.0.0.1:1", HTTPS_PROXY: "http://p" });
    await program.stop();
    const warnings = program
      .stdout()
      .split("\n")
      .filter((line) => line.includes('"warn"') && line.includes('"variable"'));
    expect(warnings.map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { variable: "PROXY_UPSTRAEM_URL", setting: "PROXY_UPSTREAM_URL" },
    ]);
  });
});
