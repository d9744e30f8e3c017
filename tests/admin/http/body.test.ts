import { afterEach, describe, expect, jest, test } from "bun:test";
import { readJsonObject } from "../../../src/admin/http/body.ts";
import { shared } from "../../support/shared.ts";
import { type Sent, startAdmin } from "../support/admin-server.ts";

const admin = shared(() => startAdmin({ trustedHops: 1 }));
const owner = shared(() => admin.login());
const key = shared(() => admin.createKey("host"));

const kibibyte = 1024;
const mebibyte = 1024 * kibibyte;
/** A second passes between two POSTs of the key, since it has ten a second. */
function nextKey(): string {
  admin.time.now += 1000;
  return key.key;
}
let addresses = 0;
/** Each login comes from another address, since an address has ten a minute. */
const nextAddress = () => `198.51.100.${addresses++}`;
const sizes: Record<number, string> = { [8 * kibibyte]: "8 KiB", [mebibyte]: "1 MiB" };
const padded = (size: number) => `{"name":"a","username":"a","password":"b","gpus":[],"x":"${"x".repeat(size)}"}`;

describe.each([
  ["POST", "/api/login", 8 * kibibyte, () => ({ headers: { "x-forwarded-for": nextAddress() } })],
  ["POST", "/api/keys", mebibyte, () => ({ as: owner })],
  ["PATCH", "/api/keys/1", mebibyte, () => ({ as: owner })],
  ["POST", "/api/gpu-stats", mebibyte, () => ({ headers: { "x-api-key": nextKey() } })],
])("the body of %s %s", (method, path, maxBytes, from: () => Sent) => {
  const send = (raw: Sent["raw"], type: string | undefined = "application/json") => {
    const { headers, ...rest } = from();
    const all = { ...headers, ...(type !== undefined && { "content-type": type }) };
    return admin.send(method, path, { ...rest, headers: all, ...(raw !== undefined && { raw }) });
  };

  test.each([
    "",
    "{",
    "[]",
    "null",
    "7",
    '"text"',
    "{'a':1}",
    '{"a":NaN}',
    '{"a":1}x',
    '{"name":"\n"}',
    "[".repeat(maxBytes),
    `${'{"a":'.repeat(maxBytes / 8)}1${"}".repeat(maxBytes / 8)}x`,
  ])("is refused if it is not a JSON object", async (raw) => {
    const response = await send(raw);
    expect([response.status, response.text]).toEqual([400, '{"error":"Invalid JSON body"}']);
  });

  test("is refused if it is not UTF-8", async () => {
    const response = await send(
      Buffer.concat([Buffer.from('{"name":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')]),
    );
    expect([response.status, response.text]).toEqual([400, '{"error":"Invalid JSON body"}']);
  });

  test.each([
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data",
    "application/jsonx",
    "text/json",
    "",
  ])("is refused as %p", async (type) => {
    const response = await send("{}", type);
    expect([response.status, response.text]).toEqual([415, '{"error":"Content-Type must be application/json"}']);
  });

  test.each(["application/json; charset=utf-8", "Application/JSON", " application/json "])(
    "is read as %p",
    async (type) => {
      expect((await send(padded(1), type)).status).not.toBe(415);
    },
  );

  test("is refused if it is missing", async () => {
    const { headers, ...rest } = from();
    const response = await admin.send(method, path, { ...rest, ...(headers !== undefined && { headers }) });
    expect([response.status, response.text]).toEqual([400, '{"error":"Invalid JSON body"}']);
  });

  test("may have the limit's size and no more, with Content-Length or chunked", async () => {
    const room = maxBytes - padded(0).length;
    const chunked = (text: string) =>
      new ReadableStream({
        start(controller) {
          for (let at = 0; at < text.length; at += 65_536) controller.enqueue(Buffer.from(text.slice(at, at + 65_536)));
          controller.close();
        },
      });
    for (const body of [padded(room), chunked(padded(room))]) expect((await send(body)).status).not.toBe(413);
    for (const body of [padded(room + 1), chunked(padded(room + 1))]) {
      const response = await send(body);
      expect([response.status, response.text]).toEqual([413, `{"error":"Body must be at most ${sizes[maxBytes]}"}`]);
    }
  });
});

test("a request without a session or key gets 401 whatever its body is", async () => {
  for (const path of ["/api/keys", "/api/gpu-stats"]) {
    for (const sent of [{ raw: "{" }, { raw: padded(2 * mebibyte), headers: { "content-type": "application/json" } }]) {
      expect((await admin.send("POST", path, sent)).status).toBe(401);
    }
  }
});

describe("a body", () => {
  afterEach(() => void jest.useRealTimers());

  /** @returns the request, and whether its body has been cancelled */
  function unending(): { request: Request; isCancelled: () => boolean } {
    let cancelled = false;
    const body = new ReadableStream({
      start: (controller) => controller.enqueue(Buffer.from('{"name":')),
      cancel: () => void (cancelled = true),
    });
    const headers = { "content-type": "application/json" };
    return { request: new Request("http://h/", { method: "POST", body, headers }), isCancelled: () => cancelled };
  }

  test.each([
    [undefined, 30_000, "Body must arrive within 30 seconds"],
    [{ maxKib: 8, timeoutMs: 5000 }, 5000, "Body must arrive within 5 seconds"],
  ])("that does not end is given up in time, with the limits %j", async (limits, timeoutMs, message) => {
    jest.useFakeTimers();
    const { request, isCancelled } = unending();
    const reading = readJsonObject(request, limits);
    jest.advanceTimersByTime(timeoutMs - 1);
    expect([isCancelled(), jest.getTimerCount()]).toEqual([false, 1]);
    jest.advanceTimersByTime(1);
    expect(await reading).toMatchObject({ status: 408, message });
    expect([isCancelled(), jest.getTimerCount()]).toEqual([true, 0]);
  });

  test("that ends leaves no timer", async () => {
    jest.useFakeTimers();
    const headers = { "content-type": "application/json" };
    const request = new Request("http://h/", { method: "POST", body: '{"a":1}', headers });
    expect(await readJsonObject(request)).toEqual({ a: 1 });
    expect(jest.getTimerCount()).toBe(0);
  });

  test("that is too large is given up at once", async () => {
    const { request, isCancelled } = unending();
    expect(await readJsonObject(request, { maxKib: 0, timeoutMs: 60_000 })).toMatchObject({ status: 413 });
    expect(isCancelled()).toBe(true);
  });
});

test("a client that disconnects while it sends is not logged as a failure", async () => {
  const arrived = Promise.withResolvers<void>();
  const observed = await startAdmin({
    store: (real) => ({
      ...real,
      keys: {
        ...real.keys,
        findActive: async (presented) => {
          arrived.resolve();
          return real.keys.findActive(presented);
        },
      },
    }),
  });
  const { key: presented } = await observed.createKey("host");
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port: Number(new URL(observed.origin).port),
    socket: { data: () => {} },
  });
  const head = ["POST /api/gpu-stats HTTP/1.1", "Host: a", `x-api-key: ${presented}`, "Content-Type: application/json"];
  socket.write(`${head.join("\r\n")}\r\nContent-Length: 100\r\n\r\n{"gpus":`);
  await arrived.promise;
  socket.terminate();
  expect((await observed.send("GET", "/healthz")).status).toBe(200);
  await observed.idle();
  expect(observed.logged.join("")).not.toContain("failed");
  await observed.stop();
});
