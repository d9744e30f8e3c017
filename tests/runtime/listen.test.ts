import { expect, test } from "bun:test";
import { CertificateError, readCertificate } from "../../src/runtime/certificate.ts";
import { createConnections, listen } from "../../src/runtime/listen.ts";
import { createAuthority, whyNoOpenssl } from "../support/authority.ts";

test.skipIf(whyNoOpenssl !== undefined)("keeps a certificate whose successor cannot be used", async () => {
  using authority = await createAuthority();
  const certificate = readCertificate(authority.sign("one"));
  const listener = listen({
    host: "127.0.0.1",
    port: 0,
    shared: false,
    certificate,
    connections: createConnections(),
    fetch: () => new Response("served"),
    internalError: () => new Response("", { status: 500 }),
  });
  const unusable = { ...certificate, cert: certificate.cert + authority.ca.slice(0, 200) };
  expect(() => listener.replaceCertificate(unusable)).toThrow(CertificateError);
  const response = await fetch(listener.url, { tls: { ca: authority.ca }, keepalive: false });
  expect(await response.text()).toBe("served");
  await listener.cut();
});
