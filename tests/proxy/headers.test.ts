import { describe, expect, test } from "bun:test";
import { clientResponseHeaders, upstreamRequestHeaders } from "../../src/proxy/headers.ts";

const options = {
  isDecoded: false,
  mustBeObject: false,
  contentLength: 3,
  requestId: "req-1",
  peerAddress: "192.0.2.7",
  upstreamApiKey: undefined,
};

describe("upstreamRequestHeaders", () => {
  test.each([
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "host",
    "expect",
    "authorization",
    "x-api-key",
    "proxy-authorization",
    "cookie",
    "x-tollgate-debug",
    "x-conversation-id",
  ])("keeps %s from the upstream", (name) => {
    const headers = upstreamRequestHeaders(new Headers({ [name]: "value" }), options);
    expect(headers.has(name)).toBe(false);
  });

  // WSGI, CGI, Rack and PHP read each of them as the name with hyphens.
  test.each([
    "content_length",
    "Transfer_Encoding",
    "content_type",
    "content_encoding",
    "accept_encoding",
    "x_api_key",
    "x-api_key",
    "x_conversation_id",
    "x_forwarded_for",
    "x-forwarded_for",
    "x_forwarded-host",
    "x_real_ip",
    "x_request_id",
  ])("keeps %s from the upstream, which may read it as a header that is ours", (name) => {
    expect(upstreamRequestHeaders(new Headers({ [name]: "value" }), options).has(name)).toBe(false);
  });

  test.each([
    ["::ffff:192.0.2.7", "192.0.2.7"],
    ["::FFFF:192.0.2.7", "192.0.2.7"],
    ["2001:db8::1", "2001:db8::1"],
  ])("names %s in X-Forwarded-For as %s", (peerAddress, named) => {
    expect(upstreamRequestHeaders(new Headers(), { ...options, peerAddress }).get("x-forwarded-for")).toBe(named);
  });

  test.each<[string, string]>([
    ["application/json", "application/json"],
    ['Application/Json;charset="utf8"', 'Application/Json;charset="utf8"'],
    ["application/json;charset=utf-16", "application/json"],
    ["application/json; charset=utf-8; x=y", "application/json"],
    ["application/vnd.x+json", "application/json"],
    ["text/plain", "application/json"],
    ["", "application/json"],
  ])("sends what must be JSON of the type %p as %p", (type, sent) => {
    const incoming = new Headers({ "content-type": type });
    expect(upstreamRequestHeaders(incoming, { ...options, mustBeObject: true }).get("content-type")).toBe(sent);
    expect(upstreamRequestHeaders(incoming, options).get("content-type")).toBe(type);
    expect(upstreamRequestHeaders(new Headers(), { ...options, mustBeObject: true }).has("content-type")).toBe(false);
  });
});

describe("clientResponseHeaders", () => {
  test.each([
    "x-accel-redirect",
    "x-accel-limit-rate",
    "x-accel-anything",
    "x-sendfile",
    "clear-site-data",
    "strict-transport-security",
    "alt-svc",
    "nel",
    "report-to",
    "service-worker-allowed",
    "refresh",
  ])("keeps %s from the client", (name) => {
    const headers = clientResponseHeaders(new Headers({ [name]: "value", "x-acceleration": "1" }), false);
    expect([...headers.keys()]).toEqual(["x-acceleration", "x-content-type-options"]);
  });
});
