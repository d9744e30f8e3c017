import { existsSync } from "node:fs";
import { findFreePort } from "./free-port.ts";
import { ownedByUnprivileged } from "./postgres.ts";
import { createTempFolder } from "./temp-folder.ts";
import { pollUntil } from "./poll-until.ts";

const file = ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].find((path) => existsSync(path));

/** Why PgBouncer cannot be used; undefined if it is installed. */
export const whyNoPgbouncer: string | undefined =
  file === undefined ? "PgBouncer is not installed (apt-get install pgbouncer): its tests are skipped" : undefined;

if (whyNoPgbouncer !== undefined) process.stderr.write(`${whyNoPgbouncer}\n`);

/**
 * A PgBouncer in front of a test PostgreSQL, on loopback. It ends with the test process.
 * @param settings lines for its `[pgbouncer]` section
 */
export async function startPgbouncer(databaseUrl: string, settings: readonly string[]) {
  const folder = createTempFolder();
  const target = new URL(databaseUrl);
  const port = findFreePort();
  await Bun.write(
    folder.file("pgbouncer.ini"),
    `[databases]
* = host=${target.hostname} port=${target.port} user=${target.username}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
${settings.join("\n")}
`,
  );
  const asOwner = await ownedByUnprivileged([folder.path, folder.file("pgbouncer.ini")]);
  const child = Bun.spawn([...asOwner, file ?? "", "-q", folder.file("pgbouncer.ini")], {
    cwd: "/",
    stdout: "ignore",
    stderr: "ignore",
  });
  const kill = (): void => child.kill("SIGKILL");
  process.on("exit", kill);
  await pollUntil(
    async () => (await Bun.connect({ hostname: "127.0.0.1", port, socket: { data() {} } })).end() ?? true,
  );
  target.port = String(port);
  return {
    /** The address of the same database through PgBouncer. */
    url: target.href,
    async [Symbol.asyncDispose]() {
      kill();
      await child.exited;
      process.off("exit", kill);
      folder.remove();
    },
  };
}
