import { describe, expect, test } from "bun:test";
import {
  appendFileSync,
  chmodSync,
  chownSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { PassThrough } from "node:stream";
import type { CommandIo } from "../../src/commands/command.ts";
import { parseEnvFile, withServiceSettings } from "../../src/commands/env-file.ts";
import { startSimulator } from "../support/simulator/simulator.ts";
import { logIn } from "../support/admin-client.ts";
import { createAuthority, whyNoOpenssl } from "../support/authority.ts";
import { findFreePort } from "../support/free-port.ts";
import { commandLine, type ProgramEnvironment, runProgram, startProgram } from "../support/program.ts";
import { createTempFolder, type TempFolder } from "../support/temp-folder.ts";

test.each([
  ["A=b", "b"],
  ["A=b\r", "b"],
  ["  A = b c  ", "b c"],
  ["A=", ""],
  ["A=pass#word # all", "pass#word # all"],
  ["A='b \"c\" \\d'", 'b "c" \\d'],
  ['A="b \\"c\\" \\\\ \\d"', 'b "c" \\ \\d'],
  ["A=b\\ c\\\nd", "b cd"],
  ["A='two\nlines'", "two\nlines"],
  ["A='open", "'open"],
  ['A=\'open "x"', "'open x"],
  ["A=first\nA=last", "last"],
  ["# A=b", undefined],
  [" ; A=b", undefined],
  ["A", undefined],
  ["export A=b", undefined],
])("a settings file with %j sets %j", (text, expected) => {
  expect(parseEnvFile(`\n${text}\nLAST=1`)).toEqual({ ...(expected === undefined ? {} : { A: expected }), LAST: "1" });
});

test("a settings file that nobody could mean takes no time", () => {
  expect(parseEnvFile(`A=${'"x"'.repeat(10_000)}\\`)["A"]).toBe(`${"x".repeat(10_000)}\\`);
});

describe("the service's settings", () => {
  /** @returns the settings that a command sees, and what it wrote */
  function see(env: Record<string, string>, given?: string, place = { envFile: "/none", dataDir: "/none" }) {
    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    const io: CommandIo = {
      env,
      stdin: new PassThrough(),
      stdout,
      stderr,
      signal: new AbortController().signal,
      endAtSignals: (work) => work(),
    };
    const seen = withServiceSettings(io, given, place).env;
    return { env: seen, output: String(stdout.read() ?? "") + String(stderr.read() ?? "") };
  }

  function createService(text: string) {
    const folder = createTempFolder();
    const place = { envFile: folder.file("tollgate.env"), dataDir: folder.file("data") };
    writeFileSync(place.envFile, text);
    mkdirSync(place.dataDir);
    return { ...place, [Symbol.dispose]: () => folder.remove() };
  }

  test("are the default, and the first line of output names their file", () => {
    using service = createService("PORT=9\nDATA_DIR=/srv\n");
    expect(see({ PORT: "" }, undefined, service)).toEqual({
      env: { PORT: "9", DATA_DIR: "/srv" },
      output: `Settings from ${service.envFile}\n`,
    });
  });

  test("have the data folder of the unit if the file names none", () => {
    using service = createService("PORT=9\n");
    expect(see({}, undefined, service).env).toEqual({ PORT: "9", DATA_DIR: service.dataDir });
    expect(see({}, undefined, { ...service, dataDir: "/none" }).env).toEqual({ PORT: "9" });
  });

  test.each([[{ DATA_DIR: "/srv" }], [{ DATABASE_URL: "postgres://db/d" }]])("are not used with %j", (env) => {
    using service = createService("PORT=9\n");
    expect(see(env, undefined, service)).toEqual({ env, output: "" });
  });

  test("of a file that is given are overridden by the environment, and need no data folder", () => {
    using service = createService("PORT=9\nHOST=::1\n");
    expect(see({ PORT: "1", DATA_DIR: "/srv" }, service.envFile, service)).toEqual({
      env: { PORT: "1", HOST: "::1", DATA_DIR: "/srv" },
      output: `Settings from ${service.envFile}\n`,
    });
  });
});

const canMount = process.getuid?.() === 0 && Bun.spawnSync(["unshare", "--mount", "true"]).success;

test.skipIf(!canMount)("check reads the service's file, and finds its data, without any option", async () => {
  using folder = createTempFolder();
  const script = `
    mount -t tmpfs none /etc; mount -t tmpfs none /var/lib; mkdir /var/lib/tollgate
    echo PORT=0 >/etc/tollgate.env; exec "$@"`;
  const { stdout } = Bun.spawnSync(["unshare", "--mount", "sh", "-ec", script, "sh", ...commandLine(["check"])], {
    env: { PATH: process.env["PATH"] ?? "", HOME: folder.path },
    cwd: folder.path,
  });
  const [first, ...lines] = stdout.toString().split("\n");
  expect(first).toBe("Settings from /etc/tollgate.env");
  expect(lines).toContain(
    "ok       database       /var/lib/tollgate/tollgate.db: empty; the first start creates its tables",
  );
});

test.skipIf(!canMount)("models reads it too, and a user who may not is told to use sudo", async () => {
  using folder = createTempFolder();
  const script = `
    mount -t tmpfs none /etc; echo PROXY_ALIAS_MODEL=coder >/etc/tollgate.env; chmod 600 /etc/tollgate.env; cd /; exec "$@"`;
  const run = (...command: string[]) => {
    const [program = "", ...args] = command;
    const { stdout, stderr } = Bun.spawnSync(["unshare", "--mount", "sh", "-ec", script, "sh", program, ...args], {
      env: { PATH: process.env["PATH"] ?? "", HOME: folder.path },
    });
    return { stdout: stdout.toString(), stderr: stderr.toString() };
  };
  const asRoot = run(...commandLine(["models"]));
  expect(asRoot.stdout).toContain("coder");
  expect(asRoot.stderr).toBe("Settings from /etc/tollgate.env\n");
  const asNobody = run("setpriv", "--reuid=65534", "--clear-groups", ...commandLine(["models"]));
  expect(asNobody.stdout).not.toContain("coder");
  expect(asNobody.stderr).toBe("tollgate: /etc/tollgate.env cannot be read; run it with sudo to use it\n");
});

test.skipIf(!canMount)("check says that a database on a full disk cannot be written", async () => {
  using folder = createTempFolder();
  const script = `
    mount -t tmpfs -o size=3m none ${folder.path}; export DATA_DIR=${folder.path}/data
    timeout 2 "$@" serve >/dev/null || true
    dd if=/dev/zero of=${folder.path}/filler bs=4k 2>/dev/null || true; exec "$@" check`;
  const { stdout } = Bun.spawnSync(["unshare", "--mount", "sh", "-ec", script, "sh", ...commandLine([])], {
    env: { PATH: process.env["PATH"] ?? "", HOME: folder.path, PORT: String(findFreePort()) },
  });
  expect(stdout.toString()).toMatch(/^failed +database .*the disk is full \(SQLITE_FULL\)$/m);
});

describe("--env-file", () => {
  test("lets each command see what the server was started with", async () => {
    using backend = startSimulator();
    using folder = createTempFolder();
    const port = String(findFreePort());
    const file = folder.file("tollgate.env");
    const dataDir = folder.file("data");
    const lines = [
      `PROXY_UPSTREAM_URL=${backend.url}`,
      `PORT=${port}`,
      `DATA_DIR=${dataDir}`,
      "ADMIN_PASSWORD='pass word'",
    ];
    await Bun.write(file, lines.join("\n"));
    // Empty values count as unset; the port says only where to find the server.
    const unset: ProgramEnvironment = { DATA_DIR: "", PORT: port };
    const program = await startProgram(unset, ["serve", "--env-file", file]);
    await logIn(program.adminUrl, "admin", "pass word");
    const run = async (...args: string[]) => await runProgram([...args, "--env-file", file], { DATA_DIR: "" });
    const announced = `Settings from ${file}\n`;
    expect(await run("check", "--quick")).toEqual({ status: 0, stdout: `${announced}ok\n`, stderr: "" });
    const check = await run("check");
    expect(check).toMatchObject({ status: 0, stderr: "" });
    expect(check.stdout).toStartWith(announced);
    expect(check.stdout).toContain(`${backend.url} responds 200`);
    const copy = folder.file("copy.db");
    expect(await run("backup", copy)).toMatchObject({
      status: 0,
      stdout: `${announced}Copied ${dataDir}/tollgate.db to ${copy}\n`,
    });
    const reset = await run("reset-password");
    expect(reset.stdout).toStartWith(announced);
    expect(reset.stderr).toContain("ADMIN_PASSWORD: is set");
    await program.stop();
    expect(await run("restore", copy)).toMatchObject({
      status: 0,
      stdout: expect.stringContaining(`Restored ${dataDir}/tollgate.db`),
    });
  });

  test.skipIf(whyNoOpenssl !== undefined)("brings the authority that Bun reads at its start", async () => {
    using authority = await createAuthority();
    using folder = createTempFolder();
    const { certFile, keyFile } = authority.sign("backend");
    await using backend = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      tls: { cert: Bun.file(certFile), key: Bun.file(keyFile) },
      fetch: () => Response.json({}),
    });
    const file = folder.file("tollgate.env");
    await Bun.write(file, `PROXY_UPSTREAM_URL=${backend.url.origin}\nNODE_EXTRA_CA_CERTS=${authority.caFile}\n`);
    const { stdout } = await runProgram(["check", "--env-file", file]);
    expect(stdout.split("Settings from")).toHaveLength(2);
    expect(stdout).toContain(`${backend.url.origin} responds 200`);
  });

  test.each(["serve", "check", "reset-password"])(
    "of a file that cannot be read is wrong usage of %s",
    async (command) => {
      expect(await runProgram([command, "--env-file", "/none/x.env"])).toEqual({
        status: 2,
        stdout: "",
        stderr: 'tollgate: --env-file: "/none/x.env" cannot be read (ENOENT) (handbook: The file of settings)\n',
      });
    },
  );
});

/** The commands that read settings, but for the server's. */
const others = [
  "check",
  "check --quick",
  "backup x",
  "restore x",
  "reset-password",
  "models",
  "move-to postgres://h/d",
];

describe("a .env file in the working folder", () => {
  const service: ProgramEnvironment = { DATA_DIR: "" };

  function folderWith(text: string) {
    const folder = createTempFolder();
    writeFileSync(folder.file(".env"), text, { mode: 0o644 });
    const run = async (command: string, environment = service) =>
      await runProgram(command.split(" "), environment, { cwd: folder.path });
    return { ...folder, run, [Symbol.dispose]: () => folder.remove() };
  }

  test("is read by serve and demo; real environment variables take precedence", async () => {
    using folder = folderWith("PORT=from-the-file\nTRUST_PROXY=from-the-file\n");
    for (const command of ["serve", "demo"]) {
      const { status, stderr } = await folder.run(command, { TRUST_PROXY: "real" });
      expect(status).toBe(2);
      expect(stderr).toContain('PORT: "from-the-file" is not allowed');
      expect(stderr).toContain('TRUST_PROXY: "real" is not allowed');
    }
  });

  test("says what it says: no $NAME is replaced, and no .env.local is read", async () => {
    using folder = folderWith("PORT=$HOME\n");
    for (const name of [".env.local", ".env.development", ".env.production"])
      writeFileSync(folder.file(name), "PORT=1");
    expect((await folder.run("serve")).stderr).toContain('PORT: "$HOME" is not allowed');
  });

  type Folder = Pick<TempFolder, "path" | "file">;
  const intoSharedFolder = ({ path, file }: Folder): void => {
    mkdirSync(file("shared"));
    chmodSync(file("shared"), 0o777);
    renameSync(file(".env"), file("shared/env"));
    symlinkSync(`${path}/shared/env`, file(".env"));
  };
  const toNothing = ({ file }: Folder): void => {
    rmSync(file(".env"));
    symlinkSync("/none", file(".env"));
  };

  test.each<[string, string, (folder: Folder) => void]>([
    ["all may write it", "another user can write", ({ file }) => chmodSync(file(".env"), 0o646)],
    ["a group may write its folder", "another user can write", ({ path }) => chmodSync(path, 0o770)],
    ["it is a link into a folder of all", "another user can write", intoSharedFolder],
    ["it is a link to nothing", "cannot be read (ENOENT)", toNothing],
    ["it has a line for a shell", "begins with export", ({ file }) => appendFileSync(file(".env"), "export A=b\n")],
    ["it has a comment behind a value", "has a comment", ({ file }) => appendFileSync(file(".env"), "A=b # c\n")],
  ])("ends serve and demo with status 2 if %s", async (_, reason, change) => {
    using folder = folderWith("PORT=from-the-file\n");
    change(folder);
    for (const command of ["serve", "demo"]) {
      const { status, stderr } = await folder.run(command);
      expect(stderr).toMatch(/^tollgate: .*\.env.*\n$/);
      expect(stderr).toContain(reason);
      expect(status).toBe(2);
    }
  });

  test.skipIf(process.getuid?.() !== 0)("ends serve with status 2 if it belongs to another user", async () => {
    using folder = folderWith("PORT=from-the-file\n");
    chownSync(folder.file(".env"), 65_534, 65_534);
    expect(await folder.run("serve")).toMatchObject({ status: 2, stderr: expect.stringContaining("another user") });
  });

  test.each(others)("makes %s end with status 2, which could use another database than the server", async (command) => {
    using folder = folderWith("PORT=1\n");
    const { status, stderr } = await folder.run(command);
    expect(stderr).toStartWith("tollgate: .env: only serve and demo read it by themselves; use --env-file .env");
    expect(status).toBe(2);
    const named = await folder.run(command, { DATA_DIR: folder.path });
    expect(named.stderr).not.toContain(".env");
  });

  test.each(["BUN_OPTIONS=--preload=./other.js", "LD_PRELOAD=/none.so", "BUN_BE_BUN=1"])(
    "runs no code by %s, whatever the command",
    async (line) => {
      using folder = folderWith(`${line}\nNODE_EXTRA_CA_CERTS=/none.pem\nPORT=no\n`);
      writeFileSync(folder.file("other.js"), 'console.error("ran")');
      const withFile = others.map((command) => command.replace(/ |$/, " --env-file .env ").trim());
      // Which commands read the file is one matter, and what of it is a setting of the runtime another.
      const readers = line.startsWith("BUN_OPTIONS") ? [...others, ...withFile, "demo", "push-gpu"] : [];
      for (const command of [...readers, "serve", "serve --env-file .env"]) {
        const { status, stderr } = await folder.run(command);
        // Neither this file nor the linker nor Bun says anything.
        expect([command, stderr]).toEqual([
          command,
          expect.stringMatching(/^(?:(?:tollgate: .*|Settings from \.env)\n)+$/),
        ]);
        expect([command, status]).toEqual([command, 2]);
      }
      expect(await folder.run("--version")).toMatchObject({ stdout: expect.stringMatching(/^tollgate /), stderr: "" });
      expect(await folder.run("check --help")).toMatchObject({
        stdout: expect.stringMatching(/^tollgate /),
        stderr: "",
      });
    },
  );

  test.skipIf(process.platform !== "linux")("hands nothing of that to the processes of PROCESSES=2", async () => {
    using folder = folderWith("LD_PRELOAD=/none.so\nPROCESSES=2\n");
    const program = await startProgram({}, ["serve", "--env-file", folder.file(".env")]);
    expect(await program.stop()).toBe(0);
    expect(program.stderr()).toBe(
      `tollgate: ${folder.file(".env")}: LD_PRELOAD ignored; only the environment can set the runtime\n`,
    );
  });
});
