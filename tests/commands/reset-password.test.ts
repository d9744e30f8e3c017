import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { hostname, userInfo } from "node:os";
import { logIn } from "../support/admin-client.ts";
import { copyDatabaseWithPassword } from "../support/migrated-database.ts";
import { runProgram, startProgram } from "../support/program.ts";
import { createTempFolder } from "../support/temp-folder.ts";

/** The password that the first start prints. */
function firstPassword(stdout: string): string {
  return /password {3}(\S+)/.exec(stdout)?.[1] ?? "";
}

describe("tollgate reset-password", () => {
  test("sets the password of a running server, and ends all sessions", async () => {
    const program = await startProgram();
    const before = firstPassword(program.stdout());
    const session = await logIn(program.adminUrl, "admin", before);
    const { status, stdout } = await runProgram(["reset-password"], { DATA_DIR: program.dataDir });
    expect(status).toBe(0);
    const [, username = "", after = ""] = /^username {3}(.*)\npassword {3}(.*)\n$/.exec(stdout) ?? [];
    expect(username).toBe("admin");
    expect((await session.request("GET", "/api/keys")).status).toBe(401);
    await expect(logIn(program.adminUrl, "admin", before)).rejects.toThrow("401");
    expect(await (await logIn(program.adminUrl, username, after)).listKeys()).toEqual([]);
    await program.stop();
  });

  test("reads the password from standard input, and does not print it", async () => {
    const program = await startProgram();
    const password = "pass word with spaces ";
    const { status, stdout, stderr } = await runProgram(
      ["reset-password", "--password-stdin"],
      { DATA_DIR: program.dataDir },
      { stdin: `${password}\n` },
    );
    expect({ status, stdout }).toEqual({ status: 0, stdout: "The password is set.\n" });
    expect(stderr).not.toContain("pass word");
    await logIn(program.adminUrl, "admin", password);
    await program.stop();
  });

  test.each([7, 513])("refuses a password of %i characters, as the console does", async (length) => {
    const password = "x".repeat(length);
    using folder = createTempFolder();
    await (await startProgram({ DATA_DIR: folder.path, ADMIN_PASSWORD: "password" })).stop();
    expect(
      await runProgram(["reset-password", "--password-stdin"], { DATA_DIR: folder.path }, { stdin: `${password}\n` }),
    ).toEqual({
      status: 2,
      stdout: "",
      stderr: "tollgate: --password-stdin: the password must have from 8 to 512 characters\n",
    });
    const program = await startProgram({ DATA_DIR: folder.path });
    await logIn(program.adminUrl, "admin", "password");
    await program.stop();
  });

  test("refuses standard input with several lines, of which one may be no password", async () => {
    using folder = createTempFolder();
    const { status, stderr } = await runProgram(
      ["reset-password", "--password-stdin"],
      { DATA_DIR: folder.path },
      { stdin: "first password\nsecond\n" },
    );
    expect({ status, stderr }).toEqual({
      status: 2,
      stderr: "tollgate: --password-stdin: standard input has several lines; write the password alone to it\n",
    });
  });

  test("sets the password of a stopped server", async () => {
    using folder = createTempFolder();
    copyDatabaseWithPassword(folder.path);
    await runProgram(["reset-password", "--password-stdin"], { DATA_DIR: folder.path }, { stdin: "stopped!" });
    const program = await startProgram({ DATA_DIR: folder.path });
    await logIn(program.adminUrl, "admin", "stopped!");
    expect(program.stdout()).not.toContain("password");
    await program.stop();
  });

  test("warns if only the server has ADMIN_PASSWORD, until a start without it", async () => {
    using folder = createTempFolder();
    const reset = async (): Promise<string> => (await runProgram(["reset-password"], { DATA_DIR: folder.path })).stderr;
    await (await startProgram({ DATA_DIR: folder.path, ADMIN_PASSWORD: "from its unit" })).stop();
    expect(await reset()).toEndWith(
      "tollgate: ADMIN_PASSWORD: the server's last start had it, and the next one with it replaces the new password\n",
    );
    await (await startProgram({ DATA_DIR: folder.path })).stop();
    expect(await reset()).not.toContain("ADMIN_PASSWORD");
  });

  test("logs who reset it, and from where", async () => {
    using folder = createTempFolder();
    copyDatabaseWithPassword(folder.path);
    const environment = { DATA_DIR: folder.path, SUDO_USER: "alice", SSH_CONNECTION: "203.0.113.9 51234 10.0.0.1 22" };
    const { stderr } = await runProgram(["reset-password"], environment);
    const where = `host=${hostname()} address=203.0.113.9`;
    expect(stderr).toEndWith(
      ` INFO  Password reset; all sessions ended user=${userInfo().username} sudoUser=alice ${where}\n`,
    );
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  });

  test("reports a missing database, and creates none", async () => {
    using folder = createTempFolder();
    const { status, stderr } = await runProgram(["reset-password"], { DATA_DIR: folder.file("data") });
    expect(status).toBe(1);
    expect(stderr).toStartWith("tollgate: DATA_DIR: there is no database");
    expect(existsSync(folder.file("data"))).toBeFalse();
  });
});
