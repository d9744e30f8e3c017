import { beforeAll, describe, expect, test } from "bun:test";
import { chmodSync } from "node:fs";
import { ownedByUnprivileged, startPostgres, whyNoPostgres } from "../support/postgres.ts";
import { runProgram, startProgram } from "../support/program.ts";
import { createTempFolder } from "../support/temp-folder.ts";
import { shared } from "../support/shared.ts";

const openssl = Bun.which("openssl");

describe.skipIf(whyNoPostgres !== undefined || openssl === null)("PostgreSQL with a private CA", () => {
  const folder = shared(() => createTempFolder());
  let database: URL;

  const makeCertificates = (): void => {
    const run = (line: string): void => {
      const { exitCode, stderr } = Bun.spawnSync([openssl ?? "", ...line.split(" ")], { cwd: folder.path });
      if (exitCode !== 0) throw new Error(stderr.toString());
    };
    const key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    run(`req -x509 ${key} -keyout ca.key -out ca.pem -days 2 -subj /CN=test`);
    run(`req ${key} -keyout server.key -out server.csr -subj /CN=localhost -addext subjectAltName=DNS:localhost`);
    run(
      "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -copy_extensions copy -out server.pem",
    );
  };

  const postgres = shared(async () => {
    makeCertificates();
    chmodSync(folder.path, 0o711);
    chmodSync(folder.file("server.key"), 0o600);
    await ownedByUnprivileged([folder.file("server.key"), folder.file("server.pem")]);
    return startPostgres([
      "fsync=off",
      "ssl=on",
      `ssl_cert_file=${folder.file("server.pem")}`,
      `ssl_key_file=${folder.file("server.key")}`,
    ]);
  });
  beforeAll(async () => {
    database = new URL(await postgres.createDatabase());
  });

  const settings = (host: string, query: string): Record<string, string> => {
    const url = new URL(database);
    url.hostname = host;
    url.search = query.replace("/etc/ssl/db-ca.pem", folder.file("ca.pem"));
    return { DATABASE_URL: url.href, SECRET_KEY: "0123456789abcdef", PORT: "0", ADMIN_PASSWORD: "password" };
  };

  test.each([
    ["localhost", "", false],
    ["127.0.0.1", "sslmode=require", true],
    ["localhost", "sslmode=verify-full&sslrootcert=/etc/ssl/db-ca.pem", true],
  ])(
    "is connected to at %s?%s, without TLS only if the address does not mention it",
    async (host, query, encrypted) => {
      const { PORT: _, ...environment } = settings(host, query);
      const program = await startProgram(environment);
      const rows = await postgres.run(
        `select distinct ssl from pg_stat_ssl join pg_stat_activity using (pid) where application_name = 'tollgate'`,
      );
      expect(rows.map(({ ssl }) => ssl)).toEqual([encrypted]);
      await program.stop();
    },
  );

  test.each([
    ["localhost", "sslmode=verify-full"],
    // The certificate is for another name.
    ["127.0.0.1", "sslmode=verify-full&sslrootcert=/etc/ssl/db-ca.pem"],
  ])("is refused in one line at %s?%s", async (host, query) => {
    const { status, stderr } = await runProgram(["serve"], settings(host, query));
    expect(status).toBe(1);
    expect(stderr).toMatch(/^tollgate: DATABASE_URL: [^\n]*certificate[^\n]*\n$/);
  });
});
