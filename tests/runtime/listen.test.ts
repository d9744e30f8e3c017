import { expect, test } from "bun:test";
import { CertificateError, readCertificate } from "../../src/runtime/certificate.ts";
import { createBurstSpreader, createConnections, listen } from "../../src/runtime/listen.ts";
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

const nextTick = () => new Promise(setImmediate);

/** A handler, and the requests that it has begun. */
function spreadHandler() {
  const begun: number[] = [];
  const handle = createBurstSpreader()((request: number) => {
    begun.push(request);
    return new Response(String(request));
  });
  return { begun, handle };
}

const numbers = (count: number, from = 0) => Array.from({ length: count }, (_, n) => from + n);

test("requests beyond 128 in one tick wait, and begin in order, 128 in each of the next ticks", async () => {
  const { begun, handle } = spreadHandler();
  const responses = Promise.all(numbers(500).map((n) => handle(n)));
  expect(begun).toEqual(numbers(128));
  for (const count of [256, 384, 500]) {
    await nextTick();
    expect(begun).toEqual(numbers(count));
  }
  expect(await Promise.all((await responses).map((response) => response.text()))).toEqual(numbers(500).map(String));
});

test("a request that comes while others wait begins after them", async () => {
  const { begun, handle } = spreadHandler();
  const flood = numbers(200).map((n) => handle(n));
  await nextTick();
  const last = handle(200);
  await Promise.all([...flood, last]);
  expect(begun).toEqual(numbers(201));
});

test("usual load begins at once, tick after tick", async () => {
  const { begun, handle } = spreadHandler();
  for (let tick = 0; tick < 50; tick++) {
    for (const n of numbers(100, tick * 100)) void handle(n);
    expect(begun).toHaveLength((tick + 1) * 100);
    await nextTick();
  }
});

test("a request that waits and fails rejects like one that does not", async () => {
  const handle = createBurstSpreader()(() => {
    throw new Error("no luck");
  });
  const failures = numbers(130).map((n) => Promise.try(() => handle(n)));
  const results = await Promise.allSettled(failures);
  expect(results.every(({ status }) => status === "rejected")).toBe(true);
});
