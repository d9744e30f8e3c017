import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { logIn } from "./admin-client.ts";
import { runProgram, startProgram } from "./program.ts";
import { rejectionOf } from "./rejection.ts";

test("a program answers when it has started, can be measured and stopped, and leaves nothing behind", async () => {
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

test("a program that ends before it is ready is an error with what it said", async () => {
  const error = await rejectionOf(startProgram({ PORT: "none" }));
  expect(String(error)).toContain("ended with 2");
  expect(String(error)).toContain("PORT");
});

test("a program run to its end gives back what it wrote, and sees nothing of this process's own settings", async () => {
  process.env["PORT"] = "none";
  const { status, stdout } = await runProgram(["--version"]);
  delete process.env["PORT"];
  expect([status, stdout.trim()]).toEqual([0, expect.stringMatching(/\d+\.\d+\.\d+/)]);
  expect(await runProgram(["serve"], { PORT: "none" })).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("PORT"),
  });
});
