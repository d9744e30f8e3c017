import { renameSync } from "node:fs";
import { createTempFolder } from "./temp-folder.ts";

const openssl = Bun.which("openssl");

/** Why tests that make certificates are skipped here, if they are. */
export const whyNoOpenssl = openssl === null ? "openssl is not installed: its tests are skipped" : undefined;

export type Authority = Awaited<ReturnType<typeof createAuthority>>;

export interface KeyFiles {
  certFile: string;
  keyFile: string;
}

const newKey = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";

/** An authority of certificates that nobody trusts unless told to. */
export async function createAuthority() {
  const folder = createTempFolder();
  const run = (line: string): void => {
    const { exitCode, stderr } = Bun.spawnSync([openssl ?? "", ...line.split(" ")], { cwd: folder.path });
    if (exitCode !== 0) throw new Error(stderr.toString());
  };
  run(`req -x509 ${newKey} -keyout ca.key -out ca.pem -days 2 -subj /CN=Tests`);
  /** Signs a certificate for 127.0.0.1 and the names, for so many days from now on. @returns its files */
  const signFor = (days: number, name: string, ...dnsNames: string[]): KeyFiles => {
    const names = ["IP:127.0.0.1", ...dnsNames.map((dnsName) => `DNS:${dnsName}`)].join(",");
    run(`req ${newKey} -keyout ${name}.key -out ${name}.csr -subj /CN=${name} -addext subjectAltName=${names}`);
    const authority = "-CA ca.pem -CAkey ca.key -CAcreateserial";
    run(`x509 -req -in ${name}.csr ${authority} -days ${days} -copy_extensions copy -out ${name}.pem`);
    return { certFile: folder.file(`${name}.pem`), keyFile: folder.file(`${name}.key`) };
  };
  return {
    caFile: folder.file("ca.pem"),
    ca: await Bun.file(folder.file("ca.pem")).text(),
    sign: (name: string, ...dnsNames: string[]) => signFor(2, name, ...dnsNames),
    signFor,
    [Symbol.dispose]: () => folder.remove(),
  };
}

/** Replaces both files, each in one step, as those who renew certificates do. */
export function replaceFiles(target: KeyFiles, by: KeyFiles): void {
  renameSync(by.certFile, target.certFile);
  renameSync(by.keyFile, target.keyFile);
}
