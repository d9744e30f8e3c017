import { join } from "node:path";
import { startSimulator } from "../support/simulator/simulator.ts";
import { logIn } from "../support/admin-client.ts";
import { startProgram } from "../support/program.ts";
import { createTempFolder } from "../support/temp-folder.ts";
import { type Exchange, successesOf } from "./successes.ts";

type Role = "viewer" | "admin";
type Security = { token?: Role[] }[];

/**
 * Sends the server what Schemathesis makes of the OpenAPI document, with a session and with a token of each role. Exits
 * with its status, 1 if a response breaks the document or is a 5xx; with 1 if too few operations succeeded with the
 * session, for refusals prove nothing, or if one did with a token that has no right to it. Usage:
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
const createToken = (role: Role) =>
  admin.expectOk<{ id: number; token: string }>("POST", "/api/tokens", { name: role, role });
const spareTokens = await Promise.all(Array.from({ length: 20 }, () => createToken("viewer")));
const createTeam = (_: unknown, n: number) =>
  admin.expectOk<{ id: number }>("POST", "/api/teams", { name: `spare ${n}` });
const spareTeams = await Promise.all(Array.from({ length: 20 }, createTeam));
const createUser = (_: unknown, n: number) =>
  admin.expectOk<{ id: number }>("POST", "/api/users", { source: "open-webui@spare", external: `spare ${n}` });
const spareUsers = await Promise.all(Array.from({ length: 20 }, createUser));
const stream = await fetch(`${program.url}/v1/chat/completions`, {
  method: "POST",
  headers: { "x-api-key": key, "content-type": "application/json", "x-simulate": "rate=1; tokens=600" },
  body: JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content: "Hi" }] }),
});
const running = await admin.listRunning();
const document = folder.file("openapi.json");
const description = await admin.expectOk<{ paths: Record<string, Record<string, object>> }>("GET", "/api/openapi.json");
await Bun.write(document, JSON.stringify(description));

interface Recorded {
  log: { entries: { request: { method: string; url: string }; response: { status: number } }[] };
}

/** @returns its status, and all exchanges */
async function send(name: string, options: string[]): Promise<{ status: number; exchanges: Exchange[] }> {
  const record = folder.file(`${name}.har`);
  const child = Bun.spawn(
    [schemathesis, ...options, "--url", program.adminUrl, "--report", "har", "--report-har-path", record],
    {
      cwd: folder.path,
      env: {
        ...process.env,
        SCHEMATHESIS_HOOKS: join(import.meta.dir, "hooks.py"),
        SESSION: admin.cookie.slice("session=".length),
        SESSION_ID: session?.id,
        SPARE_KEY_IDS: spareKeys.map(({ id }) => id).join(" "),
        SPARE_TOKEN_IDS: spareTokens.map(({ id }) => id).join(" "),
        SPARE_TEAM_IDS: spareTeams.map(({ id }) => id).join(" "),
        SPARE_USER_IDS: spareUsers.map(({ id }) => id).join(" "),
        RUNNING_IDS: running.map(({ id }) => id).join(" "),
        BACKEND: new URL(backend.url).host,
        CSRF_TOKEN: admin.csrfToken,
        API_KEY: key,
        METRICS_TOKEN: metricsToken,
      },
      stdout: "pipe",
      stderr: "inherit",
    },
  );
  // In one piece, for those of two roles are sent at the same time.
  process.stdout.write(await new Response(child.stdout).text());
  const status = await child.exited;
  const { log } = (await Bun.file(record).json()) as Recorded;
  const exchanges = log.entries.map(({ request, response }) => {
    return { method: request.method, path: new URL(request.url).pathname, status: response.status };
  });
  return { status, exchanges };
}

/** Sends as a token. @returns the operations that succeeded although the document gives the role no right to them */
async function excessOf(role: Role): Promise<string[]> {
  const { token } = await createToken(role);
  const checks = ["--checks", "not_a_server_error", "--continue-on-failure", "--phases", "coverage,fuzzing"];
  const limits = ["--seed", "1", "--max-examples", "10", "--request-timeout", "10", "--warnings", "off"];
  const as = ["-H", `Authorization: Bearer ${token}`];
  const { status, exchanges } = await send(role, ["run", document, ...as, ...checks, ...limits]);
  const done = successesOf(description.paths, exchanges).filter(({ succeeded }) => succeeded);
  const excess = done.filter(({ operation }) => !isAllowed(operation, role)).map(({ operation }) => operation);
  process.stdout.write(`As ${role}: ${done.length} operations succeeded; without a right: ${excess.join(", ")}\n`);
  return status === 0 ? excess : [...excess, "a server error"];
}

function isAllowed(operation: string, role: Role): boolean {
  const [method = "", path = ""] = operation.split(" ");
  const { security = [] } = (description.paths[path]?.[method.toLowerCase()] ?? {}) as { security?: Security };
  const [needed] = security.flatMap(({ token = [] }) => token);
  return security.length === 0 || needed === "viewer" || needed === role;
}

const { status, exchanges } = await send("session", ["--config-file", config, "run", document]);
const excess = (await Promise.all([excessOf("viewer"), excessOf("admin")])).flat();
await stream.body?.cancel().catch(() => {});
await program.stop();

// Those of a person fail: nobody has signed in at a provider.
const operations = successesOf(description.paths, exchanges).filter(
  ({ operation }) => !operation.includes(" /api/me/"),
);
const failed = operations.flatMap(({ operation, succeeded }) => (succeeded ? [] : [operation]));
const count = operations.length - failed.length;
process.stdout.write(`${count} of ${operations.length} operations succeeded; not ${failed.join(", ")}\n`);
process.exitCode = count < operations.length * leastShare || excess.length > 0 ? 1 : status;
