import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { type AddressInfo, createConnection, createServer } from "node:net";
import { type ProgramWithKey, startProgramWithKey } from "../support/program-with-key.ts";
import type { ProgramEnvironment } from "../support/program.ts";
import { createTempFolder, type TempFolder } from "../support/temp-folder.ts";

const openssl = Bun.which("openssl");

describe.skipIf(openssl === null)("a backend with TLS", () => {
  let folder: TempFolder;
  const servers: Bun.Server<undefined>[] = [];

  function makeCertificates(): void {
    const run = (line: string): void => {
      const { exitCode, stderr } = Bun.spawnSync([openssl ?? "", ...line.split(" ")], { cwd: folder.path });
      if (exitCode !== 0) throw new Error(stderr.toString());
    };
    const key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    run(`req -x509 ${key} -keyout ca.key -out ca.pem -days 2 -subj /CN=ca`);
    for (const [name, host] of [
      ["private", "IP:127.0.0.1"],
      ["elsewhere", "DNS:elsewhere.example"],
    ]) {
      run(`req ${key} -keyout ${name}.key -out ${name}.csr -subj /CN=${name} -addext subjectAltName=${host}`);
      run(
        `x509 -req -in ${name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -copy_extensions copy -out ${name}.pem`,
      );
    }
    run(
      `req -x509 ${key} -keyout self-signed.key -out self-signed.pem -days 2 -subj /CN=self -addext subjectAltName=IP:127.0.0.1`,
    );
  }

  const listOfNothing = (): Response => Response.json({ object: "list", data: [] });

  /** @returns the origin of a backend with that certificate */
  function serve(
    certificate: string,
    fetch: (request: Request) => Response | Promise<Response> = listOfNothing,
  ): string {
    const server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      tls: { key: Bun.file(folder.file(`${certificate}.key`)), cert: Bun.file(folder.file(`${certificate}.pem`)) },
      fetch,
    });
    servers.push(server);
    return server.url.origin;
  }

  beforeAll(() => {
    folder = createTempFolder();
    makeCertificates();
  });
  afterAll(async () => {
    for (const server of servers) await server.stop(true);
    folder.remove();
  });

  const listModels = ({ send }: ProgramWithKey): Promise<Response> => send("/v1/models");

  const withCa = (): ProgramEnvironment => ({ NODE_EXTRA_CA_CERTS: folder.file("ca.pem") });

  test("is trusted if NODE_EXTRA_CA_CERTS names the authority that signed its certificate", async () => {
    const program = await startProgramWithKey(serve("private"), { ...withCa(), LOG_LEVEL: "info" });
    expect((await listModels(program)).status).toBe(200);
    await program.stop();
    expect(program.stdout()).not.toContain("Backend does not respond");
  });

  test.each([
    ["private", undefined, "UNABLE_TO_VERIFY_LEAF_SIGNATURE"],
    ["self-signed", undefined, "DEPTH_ZERO_SELF_SIGNED_CERT"],
    ["elsewhere", withCa, "ERR_TLS_CERT_ALTNAME_INVALID"],
  ])(
    "with the certificate %s.pem gives 502; the log and the metrics name the cause",
    async (certificate, ca, cause) => {
      const program = await startProgramWithKey(serve(certificate), {
        ...ca?.(),
        LOG_LEVEL: "info",
        LOG_FORMAT: "json",
        METRICS_TOKEN: "scraper",
      });
      const response = await listModels(program);
      expect(response.status).toBe(502);
      expect(await response.text()).not.toContain(cause);
      const metrics = await fetch(`${program.adminUrl}/metrics`, { headers: { authorization: "Bearer scraper" } });
      expect(await metrics.text()).toContain(
        `tollgate_upstream_errors_total{code="upstream_unreachable",cause="${cause}"} 1`,
      );
      await program.stop();
      const lines = program
        .stdout()
        .split("\n")
        .filter((line) => line.includes(cause));
      expect(lines.map((line) => JSON.parse(line))).toMatchObject([
        { level: "warn", message: "Backend not reachable; requests fail until it is", cause },
        { level: "info", message: "Request ended", code: "upstream_unreachable", cause },
      ]);
    },
  );

  test("that breaks TLS when it has a request has executed it, and no other backend gets it", async () => {
    const arrived = Promise.withResolvers<undefined>();
    const executes = serve("private", ({ method }) => {
      if (method !== "POST") return listOfNothing();
      arrived.resolve(undefined);
      return new Promise(() => {});
    });
    const breaking = createServer((client) => {
      const backend = createConnection(Number(new URL(executes).port), "127.0.0.1");
      for (const socket of [client, backend]) socket.on("error", () => {});
      client.pipe(backend).pipe(client);
      void arrived.promise.then(() => client.write("this is not TLS"));
    });
    await new Promise<void>((listening) => breaking.listen(0, "127.0.0.1", listening));
    const { port } = breaking.address() as AddressInfo;
    const toOther: string[] = [];
    const other = serve("private", ({ method }) => {
      if (method === "POST") toOther.push(method);
      return listOfNothing();
    });
    const file = folder.file("models.yaml");
    const backends = `  first: { url: "https://127.0.0.1:${port}" }\n  other: { url: "${other}", spill: true }`;
    writeFileSync(file, `backends:\n${backends}\nmodels:\n  m: { backends: [first, other] }\n`);
    const program = await startProgramWithKey(undefined, { ...withCa(), MODELS_FILE: file });
    const sent = { headers: { "x-tollgate-debug": "1" } };
    const response = await program.send("/v1/chat/completions", { model: "m", messages: [] }, sent);
    expect([response.status, response.headers.get("x-tollgate-sends"), toOther]).toEqual([502, "1", []]);
    await program.stop();
    breaking.close();
  });
});
