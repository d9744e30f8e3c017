import { expect, test } from "bun:test";
import { runProgram, startProgram } from "../support/program.ts";

test("tollgate token prints a token for the running server, and nothing else", async () => {
  const program = await startProgram({ ADMIN_PASSWORD: "password" });
  const run = (...args: string[]) => runProgram(["token", ...args], { DATA_DIR: program.dataDir });
  const { status, stdout, stderr } = await run("--name", "ci", "--role", "viewer", "--expires-at", "never");
  expect([status, stdout]).toEqual([0, expect.stringMatching(/^tgt_[0-9a-f]{40}\n$/)]);
  const token = stdout.trim();
  expect(stderr).not.toContain(token);
  const send = (init?: RequestInit) =>
    fetch(`${program.adminUrl}/api/keys`, { headers: { authorization: `Bearer ${token}` }, ...init });
  expect((await send()).status).toBe(200);
  expect((await send({ method: "POST" })).status).toBe(403);
  const record = await fetch(`${program.adminUrl}/api/audit`, { headers: { authorization: `Bearer ${token}` } });
  expect(await record.json()).toMatchObject({
    rows: [{ actor: expect.stringMatching(/@.* \(command\)$/), action: "token.create", target: "token/1" }],
  });

  expect(await run("--name", "ci", "--role", "root")).toMatchObject({
    status: 2,
    stdout: "",
    stderr: "tollgate: --role must be one of viewer, admin\n",
  });
  expect(await run("--role", "admin")).toMatchObject({ status: 2, stderr: "tollgate: --name is required\n" });
  const late = await run("--name", "ci", "--role", "admin", "--expires-at", "tomorrow");
  expect([late.status, late.stderr]).toEqual([2, expect.stringContaining("--expires-at must be an ISO 8601")]);
  expect((await run("stray")).status).toBe(2);
  await program.stop();
});
