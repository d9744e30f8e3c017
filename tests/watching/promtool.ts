import { alertsYaml } from "../../src/watching/prometheus-alerts.ts";
import { createTempFolder } from "../support/temp-folder.ts";

const promtool = Bun.which("promtool");

/** Without promtool these tests are skipped. `.ci/run` sets TOLLGATE_NEEDS_PROMTOOL=1, so that they fail instead. */
export const hasPromtool = promtool !== null;
if (!hasPromtool && process.env["TOLLGATE_NEEDS_PROMTOOL"] === "1") {
  throw new Error("promtool is not installed (apt-get install prometheus)");
}

/** Runs promtool in a folder with the served rules. @param files names and contents of further ones */
export async function runPromtool(
  args: readonly string[],
  files: Readonly<Record<string, string>> = {},
): Promise<{ status: number; output: string }> {
  using folder = createTempFolder();
  for (const [name, text] of Object.entries({ "alerts.yaml": alertsYaml(), ...files })) {
    await Bun.write(folder.file(name), text);
  }
  const { exitCode, stdout, stderr } = Bun.spawnSync([promtool ?? "", ...args], { cwd: folder.path });
  return { status: exitCode, output: stderr.toString() + stdout.toString() };
}
