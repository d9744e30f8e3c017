import { describe, expect, test } from "bun:test";
import { startSimulator } from "../support/simulator/simulator.ts";
import { clientOf } from "../support/client.ts";
import { findFreePort } from "../support/free-port.ts";
import { startProgramWithKey } from "../support/program-with-key.ts";
import { connectRaw, type RawClient } from "../support/raw-client.ts";
import { startTollgate } from "../support/tollgate.ts";
import { shared } from "../support/shared.ts";

const backend = shared(() => startSimulator());
const gate = shared(() => startTollgate({ PROXY_UPSTREAM_URL: backend.url, PROXY_UPSTREAM_API_KEY: "backend-key" }));

async function send(
  method: string,
  target: string,
  headers: Record<string, string> = {},
  body: string | Uint8Array = "",
): Promise<RawClient> {
  backend.clear();
  const client = await connectRaw(gate.url);
  client.request(method, target, { Authorization: `Bearer ${gate.key}`, ...headers }, body);
  return client;
}

describe("a request with a key", () => {
  test.each(["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])("reaches the backend as %s", async (method) => {
    const client = await send(
      method,
      "/v1/anything",
      { "Content-Type": "text/plain" },
      method === "GET" ? "" : "hello",
    );
    expect((await client.head()).status).toBe(200);
    const request = await backend.nextRequest();
    expect(request.method).toBe(method);
    expect(Buffer.from(request.body()).toString()).toBe(method === "GET" ? "" : "hello");
    client.close();
  });

  test.each([
    "/v1/a%2Fb//c?x=%20&y=1+2&z=..",
    "/v1/models/org%2Fmodel",
    "/v1/",
    "/v1/a/",
    "/v1//a//b",
    "/v1/%E2%82%AC/%41",
    "/v1/a;b=c,d/@e:f",
    `/v1/${Array.from({ length: 64 }, (_, segment) => segment).join("/")}`,
  ])("keeps the target %s unchanged", async (target) => {
    const client = await send("GET", target);
    await client.ended();
    expect((await backend.nextRequest()).target).toBe(target);
    client.close();
  });

  test("keeps its headers, except the client's key, cookies and hop-by-hop headers", async () => {
    const client = await send("GET", "/v1/anything", {
      "x-api-key": gate.key,
      Cookie: "session=secret",
      "Accept-Encoding": "gzip, br",
      Connection: "keep-alive, X-Hop",
      "X-Hop": "1",
      "Keep-Alive": "timeout=5",
      "Proxy-Connection": "keep-alive",
      "Proxy-Authorization": "Basic dTpw",
      Trailer: "X-Sum",
      "X-Tollgate-Debug": "1",
      "X-Conversation-Id": "c",
      "X-Custom": "kept",
      "anthropic-version": "2023-06-01",
      "X-Forwarded-For": "198.51.100.9",
      TE: "trailers",
    });
    await client.ended();
    const request = await backend.nextRequest();
    expect(request.header("authorization")).toBe("Bearer backend-key");
    expect(request.header("host")).toBe(new URL(backend.url).host);
    expect(request.header("accept-encoding")).toBe("identity");
    expect(request.header("x-custom")).toBe("kept");
    expect(request.header("anthropic-version")).toBe("2023-06-01");
    expect(request.header("x-forwarded-for")).toBe("198.51.100.9, 127.0.0.1");
    const own = ["x-api-key", "cookie", "proxy-authorization", "x-tollgate-debug", "x-conversation-id"];
    for (const name of [...own, "x-hop", "te", "keep-alive", "proxy-connection", "trailer"])
      expect([name, request.header(name)]).toEqual([name, undefined]);
    expect(JSON.stringify(request.headers)).not.toContain(gate.key);
    client.close();
  });

  test("that came to a dual-stack socket names its client by IPv4", async () => {
    await using both = await startTollgate({ PROXY_UPSTREAM_URL: backend.url, HOST: "::" });
    backend.clear();
    const byIpv4 = clientOf(`http://127.0.0.1:${new URL(both.url).port}`, both.key);
    expect((await byIpv4.send("/v1/anything")).status).toBe(200);
    expect((await backend.nextRequest()).header("x-forwarded-for")).toBe("127.0.0.1");
  });

  // WSGI, CGI, Rack and PHP read each of them as the name with hyphens.
  test("keeps a header with `_` unless it shadows one that is ours", async () => {
    const shadows =
      "Content_Length Transfer_Encoding content_type content_encoding accept_encoding Proxy_Authorization";
    const forwarded = "x_api_key x-api_key x_conversation_id x_forwarded_for x_forwarded-host X-Real_IP x_request_id";
    const names = `${shadows} ${forwarded}`.split(" ");
    const headers = { ...Object.fromEntries(names.map((name) => [name, "7"])), "Content-Type": "text/plain" };
    const client = await send("POST", "/v1/files", { ...headers, Session_Id: "s" }, "hello");
    await client.ended();
    const request = await backend.nextRequest();
    expect(request.headers.map(([name]) => name).filter((name) => name.includes("_"))).toEqual(["Session_Id"]);
    client.close();
  });

  test("with a binary body streams it unchanged and with its length", async () => {
    const body = crypto.getRandomValues(new Uint8Array(65_536));
    const client = await send("POST", "/v1/files", { "Content-Type": "application/octet-stream" }, body);
    await client.ended();
    const request = await backend.nextRequest();
    expect(request.bodySha256()).toBe(new Bun.CryptoHasher("sha256").update(body).digest("hex"));
    expect(request.header("content-length")).toBe("65536");
    expect(request.header("transfer-encoding")).toBeUndefined();
    client.close();
  });

  test("with a chunked body is forwarded while the body is still arriving", async () => {
    const client = await connectRaw(gate.url);
    backend.clear();
    client.send(
      `PUT /v1/files HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ${gate.key}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n`,
    );
    await backend.waitFor(({ type }) => type === "head");
    client.send("6\r\n world\r\n0\r\n\r\n");
    await client.ended();
    expect(Buffer.from((await backend.nextRequest()).body()).toString()).toBe("hello world");
    client.close();
  });

  test("goes directly to the backend, even if the environment names an HTTP proxy", async () => {
    const unusedOrigin = `http://127.0.0.1:${findFreePort()}`;
    const program = await startProgramWithKey(backend.url, {
      HTTP_PROXY: unusedOrigin,
      http_proxy: unusedOrigin,
      ALL_PROXY: unusedOrigin,
    });
    expect((await program.send("/v1/models")).status).toBe(200);
    await program.stop();
  });

  test("may follow another one on the same connection", async () => {
    const client = await send("GET", "/v1/one");
    await client.ended();
    client.nextResponse();
    client.request("GET", "/v1/two", { "x-api-key": gate.key });
    await client.ended();
    expect((await client.head()).status).toBe(200);
    client.close();
  });
});

describe("the backend's response", () => {
  test("is returned byte for byte, with its headers", async () => {
    const client = await send("GET", "/v1/models", { "x-simulate": "header=X-Backend: 1" });
    const head = await client.head();
    expect(head.header("x-backend")).toBe("1");
    const direct = await fetch(`${backend.url}/v1/models`);
    expect(await client.text()).toBe(await direct.text());
    client.close();
  });

  test("to HEAD has only a head", async () => {
    const client = await send("HEAD", "/v1/models");
    expect((await client.head()).status).toBe(200);
    expect(await client.ended()).toBe("complete");
    expect(Number((await client.head()).header("content-length"))).toBeGreaterThan(0);
    expect(client.bodyBytes()).toBe(0);
    expect((await backend.nextRequest()).method).toBe("HEAD");
    client.close();
  });

  test("to HEAD without a length gets none added", async () => {
    const client = await send("HEAD", "/v1/models", { "x-simulate": "http10" });
    expect((await client.head()).header("content-length")).toBeUndefined();
    client.close();
  });

  const cookies = "set-cookies; header=set-cookie: session=stolen; header=set-cookie: SESSION = x";

  test("loses its cookies where the console has the same origin", async () => {
    const client = await send("GET", "/v1/models", { "x-simulate": cookies });
    const head = await client.head();
    expect(head.all("set-cookie")).toEqual([]);
    expect(head.header("x-content-type-options")).toBe("nosniff");
    client.close();
  });

  test("keeps several cookies where the console has another port, less one named session: cookies know no ports", async () => {
    await using apart = await startTollgate({ PROXY_UPSTREAM_URL: backend.url, ADMIN_PORT: "0" });
    const response = await apart.send("/v1/models", undefined, { script: cookies });
    expect(response.headers.getSetCookie()).toEqual([
      "first=1; Path=/",
      "second=2; HttpOnly; Expires=Wed, 21 Oct 2065 07:28:00 GMT",
    ]);
  });

  test("says nothing to the whole origin, streamed or not", async () => {
    const body = { model: "m", max_tokens: 2, messages: [{ role: "user", content: "Hi" }] };
    const spoken =
      "Clear-Site-Data Strict-Transport-Security Alt-Svc Refresh NEL Report-To Service-Worker-Allowed X-Sendfile X-Accel-Redirect X-Accel-Limit-Rate".split(
        " ",
      );
    for (const stream of [false, true]) {
      const script = spoken.map((name) => `header=${name}: "x"`).join("; ");
      const client = await send(
        "POST",
        "/v1/chat/completions",
        { "x-simulate": script },
        JSON.stringify({ ...body, stream }),
      );
      const head = await client.head();
      expect([head.status, ...spoken.filter((name) => head.header(name) !== undefined)]).toEqual([200]);
      client.close();
    }
  });

  test.each([204, 304])("with status %i has no body", async (status) => {
    const client = await send("GET", "/v1/anything", { "x-simulate": `${status}` });
    expect((await client.head()).status).toBe(status);
    expect(await client.ended()).toBe("complete");
    expect(client.bodyBytes()).toBe(0);
    client.close();
  });

  test.each([400, 401, 404, 429, 500, 503])("with status %i keeps the backend's body", async (status) => {
    const client = await send("GET", "/v1/anything", { "x-simulate": `status=${status}` });
    expect((await client.head()).status).toBe(status);
    expect(await client.text()).not.toContain("upstream_");
    client.close();
  });

  test("that redirects is forwarded, not followed", async () => {
    const client = await send("GET", "/v1/anything", { "x-simulate": "redirect" });
    const head = await client.head();
    expect(head.status).toBeWithin(300, 399);
    expect(head.header("location")).toBeDefined();
    await client.ended();
    expect(backend.requests()).toHaveLength(1);
    client.close();
  });

  test("that is compressed despite Accept-Encoding: identity is forwarded unchanged", async () => {
    const client = await send("GET", "/v1/models", { "x-simulate": "gzip" });
    expect((await client.head()).header("content-encoding")).toBe("gzip");
    const unpacked = Bun.gunzipSync(new Uint8Array(await client.body()));
    expect(JSON.parse(Buffer.from(unpacked).toString())).toHaveProperty("data");
    client.close();
  });

  test("that streams arrives frame by frame and ends with the backend's end", async () => {
    const body = JSON.stringify({
      model: "m",
      stream: true,
      max_tokens: 3,
      messages: [{ role: "user", content: "Hi" }],
    });
    const client = await send("POST", "/v1/chat/completions", { "x-simulate": "gap=2s@2" }, body);
    const first = await client.nextEvent();
    expect(first).toStartWith("data: {");
    expect(backend.stats().open).toBe(1);
    expect(await client.ended()).toBe("complete");
    expect(await client.text()).toEndWith("data: [DONE]\n\n");
    expect((await client.head()).header("content-type")).toContain("text/event-stream");
    client.close();
  });
});

describe("a backend's own address", () => {
  test.each<[header: string, seen: (backend: string) => string]>([
    ["Location: URL/pre/v1/a/b/?x=1#y", () => "/v1/a/b/?x=1#y"],
    ["Content-Location: URL/pre/v1/files/7", () => "/v1/files/7"],
    ["Location: /pre/v1/a/", () => "/v1/a/"],
    ["Location: c?d", () => "/v1/a/c?d"],
    ["Location: URL/docs", () => "/docs"],
    ["Location: URL/pre//other.example/x", () => "/other.example/x"],
    ["Location: https://other.example/pre/v1/a", () => "https://other.example/pre/v1/a"],
    ["Location: http://[", () => "http://["],
  ])("stays inside: %s", async (header, seen) => {
    await using prefixed = await startTollgate({ PROXY_UPSTREAM_URL: `${backend.url}/pre` });
    const script = `status=307; header=${header.replace("URL", backend.url)}`;
    const response = await prefixed.send("/v1/a/b?x=1", {}, { script, redirect: "manual" });
    const [name = ""] = header.split(":", 1);
    expect([response.status, response.headers.get(name)]).toEqual([307, seen(backend.url)]);
  });
});
