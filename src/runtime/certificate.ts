import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { createChangeDetector, stateOfFiles } from "./changed-files.ts";

interface CertificateFiles {
  /** The certificate, followed by those of intermediate authorities, in PEM. */
  certFile: string;
  /** In PEM, without a passphrase. */
  keyFile: string;
}

export type Certificate = ReturnType<typeof readCertificate>;

/** The message is one line for the operator. */
export class CertificateError extends Error {
  override name = "CertificateError";

  constructor(
    message: string,
    readonly part: "cert" | "key",
  ) {
    super(message);
  }
}

/** @throws CertificateError if a server could not use the files */
export function readCertificate({ certFile, keyFile }: CertificateFiles) {
  // The state of the files before they are read: a change during that is then seen as a change.
  const fingerprint = stateOfFiles([certFile, keyFile]);
  const cert = readPart(certFile, "cert");
  const key = readPart(keyFile, "key");
  const certificate = parse(certFile, "cert", () => new X509Certificate(cert));
  requireAllReadable(certFile, cert);
  const privateKey: KeyObject = parse(keyFile, "key", () => createPrivateKey(key));
  if (!certificate.checkPrivateKey(privateKey)) {
    throw new CertificateError(`${JSON.stringify(keyFile)} is not the key of the certificate`, "key");
  }
  return { cert, key, validFrom: new Date(certificate.validFrom), validTo: new Date(certificate.validTo), fingerprint };
}

function readPart(file: string, part: CertificateError["part"]): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new CertificateError(`${JSON.stringify(file)} cannot be read (${code})`, part);
  }
}

/** The original message is not passed on: it could contain a part of the key. */
function parse<T>(file: string, part: CertificateError["part"], read: () => T): T {
  try {
    return read();
  } catch {
    const expected = part === "cert" ? "a certificate in PEM" : "a private key in PEM without a passphrase";
    throw new CertificateError(`${JSON.stringify(file)} does not contain ${expected}`, part);
  }
}

const certificateStart = /^-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----/gm;

/** `X509Certificate` reads only the first one of a text, but a server does not start unless it can read them all. */
function requireAllReadable(file: string, cert: string): void {
  for (const [at, { index }] of [...cert.matchAll(certificateStart)].entries()) {
    try {
      void new X509Certificate(cert.slice(index));
    } catch {
      throw new CertificateError(`${JSON.stringify(file)}: certificate ${at + 1} of the file cannot be read`, "cert");
    }
  }
}

export const hasExpired = ({ validTo }: Pick<Certificate, "validTo">, now: number): boolean => validTo.getTime() <= now;

export interface CertificateObserver {
  /** The certificate in use is another one now. */
  onChange(certificate: Certificate): void;
  /** The files changed, and cannot be used as they are now. */
  onProblem(error: CertificateError): void;
}

/**
 * Reports each change of the files since the certificate in use was read from them, and those that cannot be used. Polls,
 * since those who renew certificates replace files, folders or links to them. An expired one never replaces a valid one.
 * @returns stops watching
 */
export function watchCertificate(
  files: CertificateFiles,
  first: Pick<Certificate, "fingerprint" | "validTo">,
  observer: CertificateObserver,
  { clock, intervalMs = 1000 }: { clock: () => number; intervalMs?: number },
): () => void {
  const haveChanged = createChangeDetector([files.certFile, files.keyFile], first.fingerprint);
  let inUse = first;
  const replace = (): void => {
    const next = readCertificate(files);
    if (hasExpired(next, clock()) && !hasExpired(inUse, clock())) {
      const problem = `${JSON.stringify(files.certFile)} has expired (${next.validTo.toISOString()})`;
      throw new CertificateError(problem, "cert");
    }
    observer.onChange(next);
    inUse = next;
  };
  const check = (): void => {
    if (!haveChanged()) return;
    try {
      replace();
    } catch (error) {
      if (!(error instanceof CertificateError)) throw error;
      // Often the second file is yet to be written: that is the next change.
      observer.onProblem(error);
    }
  };
  const timer = setInterval(check, intervalMs);
  timer.unref();
  return () => clearInterval(timer);
}
