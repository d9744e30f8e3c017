import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { modelsFileSchema } from "../../src/config/models-schema.ts";
import { runProgram } from "../support/program.ts";
import { createTempFolder } from "../support/temp-folder.ts";

describe("tollgate models", () => {
  test("prints a file that `check` accepts once the key has its variable", async () => {
    using folder = createTempFolder();
    writeFileSync(folder.file("settings"), "PROXY_ALIAS_MODEL=coder\nPROXY_UPSTREAM_API_KEY=sk-secret\n");
    const printed = await runProgram(["models", "--env-file", folder.file("settings")]);
    expect(printed).toMatchObject({ status: 0, stderr: `Settings from ${folder.file("settings")}\n` });
    expect(printed.stdout).toContain("api_key_env: BACKEND_KEY");
    writeFileSync(folder.file("models.yaml"), printed.stdout);
    const settings = { MODELS_FILE: folder.file("models.yaml"), PORT: "0" };
    const refused = await runProgram(["check"], settings);
    expect(refused).toMatchObject({ status: 2, stderr: expect.stringContaining("environment variable is not set") });
    const { status, stdout } = await runProgram(["check"], { ...settings, BACKEND_KEY: "sk-secret" });
    // No backend runs.
    expect(status).toBe(1);
    expect(stdout).toMatch(/^ok +models .*, 1 backends, 1 models,/m);
  });

  test("prints the schema of the file", async () => {
    const { status, stdout } = await runProgram(["models", "--schema"], { PORT: "no number" });
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toEqual(JSON.parse(JSON.stringify(modelsFileSchema)));
  });

  test.each<[string[], Record<string, string>, string]>([
    [["models"], { MODELS_FILE: "m.yaml" }, 'MODELS_FILE: the settings name a file already, "m.yaml"'],
    [["models"], { PORT: "no number" }, 'PORT: "no number" is not allowed; use a whole number from 0 to 65535'],
  ])("refuses %j with %j", async (args, environment, problem) => {
    const { status, stderr } = await runProgram(args, environment);
    expect({ status, stderr }).toEqual({ status: 2, stderr: `tollgate: ${problem}\n` });
  });
});
