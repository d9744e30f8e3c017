import { join } from "node:path";
import { startSimulator } from "../../src/simulator/simulator.ts";
import { logIn } from "../support/admin-client.ts";
import { startProgram } from "../support/program.ts";
import { createTempFolder } from "../support/temp-folder.ts";

/**
 * Sends the server what Schemathesis makes of the OpenAPI document. Exits with its status: 1 if a response breaks the
 * document, or is a 5xx. Usage: `bun tests/schemathesis/run.ts PATH_OF_SCHEMATHESIS`.
 */
const [schemathesis = "schemathesis"] = process.argv.slice(2);
const password = "correct horse battery staple";
const metricsToken = "metrics-token";
const config = join(import.meta.dir, "schemathesis.toml");

using folder = createTempFolder();
using backend = startSimulator();
const program = await startProgram({
  PROXY_UPSTREAM_URL: backend.url,
  ADMIN_PASSWORD: password,
  METRICS_TOKEN: metricsToken,
});
const admin = await logIn(program.adminUrl, "admin", password);
const { key } = await admin.createKey("schemathesis");
const document = folder.file("openapi.json");
await Bun.write(document, await (await admin.request("GET", "/api/openapi.json")).text());

const child = Bun.spawn([schemathesis, "--config-file", config, "run", document, "--url", program.adminUrl], {
  cwd: folder.path,
  env: {
    ...process.env,
    SESSION: admin.cookie.slice("session=".length),
    CSRF_TOKEN: admin.csrfToken,
    API_KEY: key,
    METRICS_TOKEN: metricsToken,
  },
  stdout: "inherit",
  stderr: "inherit",
});
process.exitCode = await child.exited;
await program.stop();
