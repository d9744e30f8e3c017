import { expect, test } from "bun:test";
import { join } from "node:path";
import { bunSettings } from "../../src/runtime/bun-settings.ts";
import { createTempFolder } from "../support/temp-folder.ts";

/** What a program knows after it applied the settings, and whether it still has its process id and arguments. */
async function applied(env: Record<string, string>) {
  using folder = createTempFolder();
  const script = join(folder.path, "script.ts");
  const module = join(import.meta.dir, "../../src/runtime/bun-settings.ts");
  await Bun.write(
    script,
    `import { applyBunSettings, bunSettings } from ${JSON.stringify(module)};
    applyBunSettings();
    const settings = Object.fromEntries(Object.keys(bunSettings).map((name) => [name, process.env[name]]));
    console.log(JSON.stringify({ settings, pid: process.pid, args: process.argv.slice(2) }));`,
  );
  const child = Bun.spawn([process.execPath, script, "serve", "--x"], { env, stdout: "pipe", stderr: "inherit" });
  const { settings, pid, args } = (await new Response(child.stdout).json()) as Record<string, unknown>;
  return { settings, isSame: pid === child.pid, args };
}

const path = process.env["PATH"] ?? "";

test("the program gets the settings, as the same process with the same arguments", async () => {
  expect(await applied({ PATH: path })).toEqual({ settings: bunSettings, isSame: true, args: ["serve", "--x"] });
});

test("a setting that the operator has made stays", async () => {
  const made = { BUN_CONFIG_MAX_HTTP_REQUESTS: "300" };
  const { settings } = await applied({ PATH: path, ...made });
  expect(settings).toEqual({ ...bunSettings, ...made });
});
