import { join } from "node:path";
import { startSimulator } from "../support/simulator/simulator.ts";
import { logIn } from "../support/admin-client.ts";
import { startProgram } from "../support/program.ts";
import { createTempFolder } from "../support/temp-folder.ts";
import { successesOf } from "./successes.ts";

/**
 * Sends the server what Schemathesis makes of the OpenAPI document. Exits with its status, 1 if a response breaks the
 * document or is a 5xx, or with 1 if too few operations succeeded: refusals prove nothing. Usage:
 * `bun tests/schemathesis/run.ts PATH_OF_SCHEMATHESIS`.
 */
const [schemathesis = "schemathesis"] = process.argv.slice(2);
const password = "correct horse battery staple";
const metricsToken = "metrics-token";
const config = join(import.meta.dir, "schemathesis.toml");
const leastShare = 0.9;

using folder = createTempFolder();
using backend = startSimulator();
const program = await startProgram({
  PROXY_UPSTREAM_URL: backend.url,
  ADMIN_PASSWORD: password,
  METRICS_TOKEN: metricsToken,
});
const admin = await logIn(program.adminUrl, "admin", password);
const [session] = await admin.expectOk<{ id: string }[]>("GET", "/api/sessions");
const { key } = await admin.createKey("schemathesis");
const spareKeys = await Promise.all(Array.from({ length: 50 }, (_, n) => admin.createKey(`spare ${n}`)));
const stream = await fetch(`${program.url}/v1/chat/completions`, {
  method: "POST",
  headers: { "x-api-key": key, "content-type": "application/json", "x-simulate": "rate=1; tokens=600" },
  body: JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content: "Hi" }] }),
});
const { requests: running } = await admin.expectOk<{ requests: { id: string }[] }>("GET", "/api/in-flight");
const document = folder.file("openapi.json");
const description = await admin.expectOk<{ paths: Record<string, object> }>("GET", "/api/openapi.json");
await Bun.write(document, JSON.stringify(description));

const record = folder.file("exchanges.har");
const report = ["--report", "har", "--report-har-path", record];
const child = Bun.spawn(
  [schemathesis, "--config-file", config, "run", document, "--url", program.adminUrl, ...report],
  {
    cwd: folder.path,
    env: {
      ...process.env,
      SCHEMATHESIS_HOOKS: join(import.meta.dir, "hooks.py"),
      SESSION: admin.cookie.slice("session=".length),
      SESSION_ID: session?.id,
      SPARE_KEY_IDS: spareKeys.map(({ id }) => id).join(" "),
      RUNNING_IDS: running.map(({ id }) => id).join(" "),
      BACKEND: new URL(backend.url).host,
      CSRF_TOKEN: admin.csrfToken,
      API_KEY: key,
      METRICS_TOKEN: metricsToken,
    },
    stdout: "inherit",
    stderr: "inherit",
  },
);
const status = await child.exited;
await stream.body?.cancel().catch(() => {});
await program.stop();

interface Recorded {
  log: { entries: { request: { method: string; url: string }; response: { status: number } }[] };
}

const { log } = (await Bun.file(record).json()) as Recorded;
const exchanges = log.entries.map(({ request, response }) => {
  return { method: request.method, path: new URL(request.url).pathname, status: response.status };
});
const operations = successesOf(description.paths, exchanges);
const failed = operations.flatMap(({ operation, succeeded }) => (succeeded ? [] : [operation]));
const count = operations.length - failed.length;
process.stdout.write(`${count} of ${operations.length} operations succeeded; not ${failed.join(", ")}\n`);
process.exitCode = count < operations.length * leastShare ? 1 : status;
