import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { logIn } from "./admin-client.ts";
import { runProgram, startProgram } from "./program.ts";
import { rejectionOf } from "./rejection.ts";

test("a started program responds, reports memory and CPU, stops, and leaves no data folder", async () => {
  const program = await startProgram({ ADMIN_PASSWORD: "correct horse" });
  expect((await fetch(`${program.adminUrl}/healthz`)).status).toBe(200);
  const admin = await logIn(program.adminUrl, "admin", "correct horse");
  expect(await admin.createKey("first")).toMatchObject({ name: "first", is_active: true });
  expect(program.rssBytes()).toBeGreaterThan(10_000_000);
  expect(program.cpuMs()).toBeGreaterThan(0);
  expect(existsSync(program.dataDir)).toBe(true);
  expect(await program.stop()).toBe(0);
  expect(existsSync(program.dataDir)).toBe(false);
  expect(program.stdout()).not.toBe("");
});

test("a program that exits before it is ready is an error with its output", async () => {
  const error = await rejectionOf(startProgram({ PORT: "none" }));
  expect(String(error)).toContain("exited with 2");
  expect(String(error)).toContain("PORT");
});

test("runProgram returns status and output and does not pass this process's settings on", async () => {
  process.env["PORT"] = "none";
  const { status, stdout } = await runProgram(["--version"]);
  delete process.env["PORT"];
  expect([status, stdout.trim()]).toEqual([0, expect.stringMatching(/\d+\.\d+\.\d+/)]);
  expect(await runProgram(["serve"], { PORT: "none" })).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("PORT"),
  });
});
