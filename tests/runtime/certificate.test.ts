import { describe, expect, test } from "bun:test";
import { chmodSync, copyFileSync } from "node:fs";
import { CertificateError, readCertificate, watchCertificate } from "../../src/runtime/certificate.ts";
import { createAuthority, type KeyFiles, replaceFiles, whyNoOpenssl } from "../support/authority.ts";
import { pollUntil } from "../support/poll-until.ts";
import { createTempFolder } from "../support/temp-folder.ts";

const intervalMs = 20;

const problemOf = (certFile: string, keyFile: string): string => {
  try {
    readCertificate({ certFile, keyFile });
    return "none";
  } catch (error) {
    if (!(error instanceof CertificateError)) throw error;
    return `${error.part}: ${error.message}`;
  }
};

describe.skipIf(whyNoOpenssl !== undefined)("a certificate", () => {
  test("is read with its key and its dates", async () => {
    using authority = await createAuthority();
    const { cert, key, validFrom, validTo } = readCertificate(authority.sign("one"));
    expect(cert).toStartWith("-----BEGIN CERTIFICATE-----");
    expect(key).toStartWith("-----BEGIN PRIVATE KEY-----");
    expect((validTo.getTime() - validFrom.getTime()) / 86_400_000).toBe(2);
  });

  test("is refused if a file is missing, empty, swapped, of another certificate, or has a passphrase", async () => {
    using authority = await createAuthority();
    using folder = createTempFolder();
    const one = authority.sign("one");
    const other = authority.sign("other");
    await Bun.write(folder.file("empty"), "");
    const encrypted = folder.file("encrypted.key");
    Bun.spawnSync(["openssl", "ec", "-in", one.keyFile, "-aes128", "-passout", "pass:secret", "-out", encrypted]);
    const missing = folder.file("missing");
    expect(problemOf(missing, one.keyFile)).toBe(`cert: "${missing}" cannot be read (ENOENT)`);
    expect(problemOf(one.certFile, folder.path)).toBe(`key: "${folder.path}" cannot be read (EISDIR)`);
    expect(problemOf(folder.file("empty"), one.keyFile)).toContain("does not contain a certificate in PEM");
    expect(problemOf(one.keyFile, one.certFile)).toContain("does not contain a certificate in PEM");
    expect(problemOf(one.certFile, one.certFile)).toContain("does not contain a private key in PEM");
    expect(problemOf(one.certFile, encrypted)).toContain("without a passphrase");
    expect(problemOf(one.certFile, other.keyFile)).toBe(`key: "${other.keyFile}" is not the key of the certificate`);
  });

  test("is refused if one of the later certificates in its file is damaged, cut off or joined to the next", async () => {
    using authority = await createAuthority();
    using folder = createTempFolder();
    const { certFile, keyFile } = authority.sign("one");
    const own = await Bun.file(certFile).text();
    const { ca } = authority;
    const chains = {
      damaged: own + ca.replace(/^MII.{9}/m, "AAAAAAAAAAAA"),
      "third damaged": own + ca + ca.replace(/^MII./m, "!!!!"),
      "cut off": own + ca.slice(0, 200),
      "without an end": `${own}-----BEGIN CERTIFICATE-----\n`,
      joined: own + ca.trimEnd() + ca,
    };
    for (const [name, chain] of Object.entries(chains)) {
      const file = folder.file(name);
      await Bun.write(file, chain);
      const number = name.startsWith("third") ? 3 : 2;
      expect(problemOf(file, keyFile)).toBe(`cert: "${file}": certificate ${number} of the file cannot be read`);
    }
  });

  test("may stand among others, texts and its key", async () => {
    using authority = await createAuthority();
    using folder = createTempFolder();
    const { certFile, keyFile } = authority.sign("one");
    const [own, key] = [await Bun.file(certFile).text(), await Bun.file(keyFile).text()];
    const files = [
      own + authority.ca,
      key + own,
      own + key + authority.ca,
      `# Ours\n${own}\nSubject: CN=Tests\n${authority.ca}`,
    ];
    for (const [at, text] of [...files, (own + authority.ca).replaceAll("\n", "\r\n")].entries()) {
      const file = folder.file(String(at));
      await Bun.write(file, text);
      expect(problemOf(file, keyFile)).toBe("none");
    }
  });

  test("that changes is reported once, and not before its key fits", async () => {
    using authority = await createAuthority();
    const files = authority.sign("one");
    const next = authority.sign("next");
    const { cert: expected } = readCertificate(next);
    const seen: string[] = [];
    const stop = watchCertificate(
      files,
      readCertificate(files),
      {
        onChange: ({ cert }) => seen.push(cert === expected ? "next" : "another"),
        onProblem: ({ part }) => seen.push(`wrong ${part}`),
      },
      { clock: Date.now, intervalMs },
    );
    copyFileSync(next.certFile, files.certFile);
    await pollUntil(() => seen.length === 1);
    replaceFiles(files, next);
    await pollUntil(() => seen.length === 2);
    expect(seen).toEqual(["wrong key", "next"]);
    chmodSync(files.keyFile, 0o400);
    await pollUntil(() => seen.length === 3);
    stop();
  });

  test("that changed before it was watched, but after it was read, is reported", async () => {
    using authority = await createAuthority();
    const files = authority.sign("one");
    const next = authority.sign("next");
    const inUse = readCertificate(files);
    const { cert: expected } = readCertificate(next);
    replaceFiles(files, next);
    const seen: string[] = [];
    const stop = watchCertificate(
      files,
      inUse,
      {
        onChange: ({ cert }) => seen.push(cert),
        onProblem: ({ message }) => seen.push(message),
      },
      { clock: Date.now, intervalMs },
    );
    await pollUntil(() => seen.length > 0);
    stop();
    expect(seen).toEqual([expected]);
  });

  const day = 24 * 60 * 60 * 1000;

  /** Watches with a clock that the test sets. */
  function watch(files: KeyFiles, startAt: number) {
    const seen: string[] = [];
    const time = { now: startAt };
    const stop = watchCertificate(
      files,
      readCertificate(files),
      {
        onChange: ({ validTo }) => seen.push(`uses ${validTo.toISOString()}`),
        onProblem: ({ message }) => seen.push(message),
      },
      { clock: () => time.now, intervalMs },
    );
    return { seen, time, [Symbol.dispose]: stop };
  }

  test("that is valid is not replaced by an expired one, but an expired one is by any", async () => {
    using authority = await createAuthority();
    const files = authority.signFor(3, "valid");
    const [earlier, later] = [authority.signFor(1, "earlier"), authority.signFor(1, "later")];
    const [ofValid, ofLater] = [readCertificate(files).validTo, readCertificate(later).validTo];
    const expired = readCertificate(earlier).validTo;
    using watched = watch(files, ofValid.getTime() - day / 2);
    replaceFiles(files, earlier);
    await pollUntil(() => watched.seen.length === 1);
    expect(watched.seen).toEqual([`"${files.certFile}" has expired (${expired.toISOString()})`]);
    watched.time.now = ofValid.getTime() + 1;
    replaceFiles(files, later);
    await pollUntil(() => watched.seen.length === 2);
    expect(watched.seen.slice(1)).toEqual([`uses ${ofLater.toISOString()}`]);
  });
});
