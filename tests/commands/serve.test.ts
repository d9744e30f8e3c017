import { describe, expect, test } from "bun:test";
import { chmodSync, readdirSync, statSync } from "node:fs";
import { logIn } from "../support/admin-client.ts";
import { findFreePort } from "../support/free-port.ts";
import { pollUntil } from "../support/poll-until.ts";
import { commandLine, type FinishedProgram, runProgram, startProgram } from "../support/program.ts";
import { createTempFolder } from "../support/temp-folder.ts";

/** An error that the operator can fix: one line, no stack trace. */
function expectOneLine({ status, stderr }: FinishedProgram, line: string): void {
  expect(stderr).toBe(`tollgate: ${line}\n`);
  expect(status).toBe(1);
}

const linesOf = (text: string): Record<string, unknown>[] =>
  text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));

describe("the first start", () => {
  test.each(["json", "pretty"])("prints the generated password once, with a log in %s format", async (format) => {
    using folder = createTempFolder();
    const environment = { DATA_DIR: folder.path, LOG_FORMAT: format };
    const first = await startProgram(environment);
    const [, username = "", password = ""] = /username {3}(\S+)\n +password {3}(\S+)\n/.exec(first.stdout()) ?? [];
    await logIn(first.adminUrl, username, password);
    await first.stop();
    expect(first.stdout().split(password)).toHaveLength(2);
    expect(first.stderr()).toBe("");
    const second = await startProgram(environment);
    await logIn(second.adminUrl, username, password);
    await second.stop();
    expect(second.stdout()).not.toContain("password");
  });

  test("logs its addresses and the backend in one entry", async () => {
    const program = await startProgram({ ADMIN_PASSWORD: "password", PROXY_UPSTREAM_URL: "http://127.0.0.1:9/v1/" });
    const { message, proxy, console, backend } = JSON.parse(program.stdout().split("\n")[0] ?? "");
    expect({ message, proxy, console, backend }).toEqual({
      message: "Listening",
      proxy: `${program.url}/v1`,
      console: program.url,
      backend: "http://127.0.0.1:9",
    });
    await program.stop();
  });

  test("creates the data folder, readable only by its owner", async () => {
    using folder = createTempFolder();
    const program = await startProgram({ DATA_DIR: folder.file("a/b"), HOME: folder.path });
    await program.stop();
    expect(readdirSync(folder.file("a/b"))).toContain("secret_key");
    expect(statSync(folder.file("a/b")).mode & 0o777).toBe(0o700);
    for (const name of ["secret_key", "tollgate.db"]) {
      expect(statSync(folder.file(`a/b/${name}`)).mode & 0o777).toBe(0o600);
    }
  });
});

test("a server goes on when the reader of its log has left", async () => {
  using folder = createTempFolder();
  const port = String(findFreePort());
  const env = { PATH: process.env["PATH"] ?? "", HOME: folder.path, DATA_DIR: folder.path, PORT: port };
  const child = Bun.spawn(commandLine(["serve"]), { env, cwd: folder.path, stdout: "pipe", stderr: "pipe" });
  const reader = child.stdout.getReader();
  await reader.read();
  await reader.cancel();
  // What ends it has lines in the log too.
  await pollUntil(async () => (await fetch(`http://127.0.0.1:${port}/healthz`)).ok);
  child.kill("SIGTERM");
  expect({ status: await child.exited, stderr: await new Response(child.stderr).text() }).toEqual({
    status: 0,
    stderr: "",
  });
});

describe("a data folder that every user can write to", () => {
  const isAboutFolder = ({ message }: Record<string, unknown>): boolean =>
    message === "Every user of this host can write to DATA_DIR and replace the database";

  test.each(["1", "2"])("is logged once as a warning with PROCESSES=%s", async (processes) => {
    using folder = createTempFolder();
    chmodSync(folder.path, 0o777);
    const program = await startProgram({ DATA_DIR: folder.path, ADMIN_PASSWORD: "password", PROCESSES: processes });
    await program.stop();
    expect(linesOf(program.stdout()).filter(isAboutFolder)).toMatchObject([{ level: "warn", dataDir: folder.path }]);
  });

  test("is not logged if only its owner can write", async () => {
    using folder = createTempFolder();
    chmodSync(folder.path, 0o755);
    const program = await startProgram({ DATA_DIR: folder.path, ADMIN_PASSWORD: "password" });
    await program.stop();
    expect(linesOf(program.stdout()).filter(isAboutFolder)).toEqual([]);
  });
});

describe("an unusable data folder", () => {
  test("is reported in one line if it is a file", async () => {
    using folder = createTempFolder();
    await Bun.write(folder.file("data"), "");
    const finished = await runProgram(["serve"], { DATA_DIR: folder.file("data") });
    expectOneLine(finished, `DATA_DIR "${folder.file("data")}": the data folder is not a folder`);
  });
});

test.each(["1", "2"])(
  "with PROCESSES=%s, an address of PostgreSQL that is none ends it with status 2",
  async (PROCESSES) => {
    const DATABASE_URL = "postgres://tollgate:pass#word@db/tollgate";
    const finished = await runProgram(["serve"], {
      DATABASE_URL,
      SECRET_KEY: "0123456789abcdef",
      PROCESSES,
      PORT: "0",
    });
    expect(finished).toMatchObject({
      status: 2,
      stderr:
        "tollgate: DATABASE_URL: the address is malformed; encode special characters of the password, such as # as %23\n",
    });
  },
);
