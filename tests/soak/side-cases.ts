import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { hostileBodies } from "../fixtures/hostile-bodies.ts";
import { recordedResponses } from "../fixtures/recorded-responses.ts";
import { list, recordings, withTexts } from "../support/recorded-requests.ts";
import type { Answer, Case, Sent } from "./sides.ts";

/** The cases that are written down: those of the wire tests, and a table of what is odd. */

const page = "https://chat.example.com";
/** By name, what a key may have. None refuses anything, so that charges can be compared. */
export const ruleSets: Readonly<Record<string, object>> = {
  "no rules": {},
  tokens: { tokens_per_day: 1_000_000_000, requests_per_minute: 100_000 },
  places: { max_concurrency: 1000 },
  models: { allowed_models: ["m", "served", "wide*"] },
};

export const chat = '{"model":"m","max_tokens":4,"messages":[{"role":"user","content":"Hi"}]}';
export const streamed = `{"stream":true,${chat.slice(1)}`;
export const streamPaths = ["/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses"] as const;
export const bodyPaths = [...streamPaths, "/v1/embeddings", "/v1/audio/transcriptions", "/v1/anything"] as const;

/** A request as text: the line, `Host`, the key and the id, and what is given. */
export const request =
  (line: string, headers: readonly string[] = [], body: string | Uint8Array = ""): Sent["bytes"] =>
  (key, id) => {
    const length = Buffer.byteLength(body);
    const framed = headers.some((one) => /^transfer-encoding|^content-length/i.test(one)) || length === 0;
    const lines = [line, "Host: h", `x-api-key: ${key}`, `X-Request-Id: ${id}`, ...headers];
    if (!framed) lines.push(`Content-Length: ${length}`);
    return [`${lines.join("\r\n")}\r\n\r\n`, body];
  };

export const post = (path: string, body: string | Uint8Array, headers: readonly string[] = []): Sent => ({
  bytes: request(`POST ${path} HTTP/1.1`, ["Content-Type: application/json", ...headers], body),
});

export const whole = (body: string | Uint8Array, contentType = "application/json", status = "200 OK"): Answer => {
  const head = `HTTP/1.1 ${status}\r\nContent-Type: ${contentType}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n`;
  return { pieces: [head, body] };
};

const targets = [
  ..."/v1 /v1/ //v1/models /v1//models /v1///models /v1////models //v1//models /V1/models /v1/v1/models /v1/models/ /v1/models// /v1/m%6Fdels".split(
    " ",
  ),
  ..."/v1/a%2Fb /v1/a%252Fb /v1/%20 /v1/a;b=c /v1/a,b@c:d /v1/%E2%82%AC /v1/%ff /v1/% /v1/%zz /v1/a%23b /v1/a%3Fb /v1/a%00b /v1/a%0ab".split(
    " ",
  ),
  ..."/v1/.. /v1/../api/keys /v1/a/../b /v1/%2e%2e/api /v1/%252e%252e/api /v1/.%2e/x /v1/a..b /v1/a\\..\\b /v1/..%2fapi /v1/..;/api /x/../v1/models".split(
    " ",
  ),
  ..."/./v1/models /%2e/v1/models /v1/. /v1/./models /v1/%2e/models /v1/a/%2E%2E /v1\\models /v1\\..\\api /v1/%u002e%u002e/api /v1/%c0%ae%c0%ae/api".split(
    " ",
  ),
  ..."/v1/models?x=../y /v1/models?a=1&b=%20+c /v1/models? /v1/models?model=other /v1/models#x /v1?x /v1?x=/../y".split(
    " ",
  ),
  ..."http://other.example/v1/models http://other.example/v1/a/../b https://h/v1/models http://h http://h/ //h/v1/models * h:443 v1/models".split(
    " ",
  ),
  ..."/v1/chat/completions/ /v1/chat/completions// /v1//chat/completions /v1/Chat/Completions /v1/chat%2Fcompletions /v1/chat/completions? /v1/chat/completions;x".split(
    " ",
  ),
  ..."/v1/files /v1/fil%65s /v1//files /v1/batches /v1/tollgate/key /v1/tollgate /v1/tollgate/none /v1/tollgate/key/ /v1/model/info".split(
    " ",
  ),
  ..."/v1/models/m /v1/models/org%2Fm /v1/models/org/m /v1/responses/resp_unknown /v1/responses/resp_unknown/cancel /v1/messages/count_tokens".split(
    " ",
  ),
  `/v1/${"a/".repeat(63)}b`,
  `/v1/${"a/".repeat(64)}b`,
  `/v1/${"a/".repeat(70)}../b`,
  `/v1/${"a".repeat(9000)}`,
  `/v1/a${"/".repeat(20)}b`,
];

const methods = "GET HEAD POST PUT PATCH DELETE OPTIONS TRACE CONNECT PROPFIND BREW get".split(" ");
const hosts = ["", "a b", "a/b", "a@b", "h:99999", "h:x", "[::1", "[::1]:80", "h:443", "evil.example", "127.0.0.1"];

/** Their first answer alone is compared, so that each is a connection of its own. */
const paths = (): Case[] => [
  ...targets.flatMap((target) => [
    odd(`GET ${target.slice(0, 60)}`, [{ bytes: request(`GET ${target} HTTP/1.1`) }]),
    odd(`POST ${target.slice(0, 60)}`, [post(target, chat)]),
  ]),
  ...targets.slice(0, 60).map((target): Case => {
    const name = `GET ${target.slice(0, 60)} of a key with rules`;
    return {
      room: "paths",
      name,
      rules: ruleSets["models"] ?? {},
      sent: [{ bytes: request(`GET ${target} HTTP/1.1`) }],
    };
  }),
  ...methods.flatMap((method) =>
    [
      "/v1/anything",
      "/v1/models",
      "/v1/chat/completions",
      "/v1/tollgate/key",
      "/v1/a/../b",
      "/healthz",
      "/",
      "h:443",
    ].flatMap((target) =>
      ["", chat].map((body) => odd(`${method} ${target} ${body.length}`, [withMethod(method, target, body)])),
    ),
  ),
  ...hosts.flatMap((host) =>
    ["/v1/models", "/v1/a/../b", "/healthz", "/"].map((target) =>
      odd(`Host: ${host} ${target}`, [
        {
          bytes: (key, id) => [
            `GET ${target} HTTP/1.1\r\nHost: ${host}\r\nx-api-key: ${key}\r\nX-Request-Id: ${id}\r\n\r\n`,
          ],
        },
      ]),
    ),
  ),
  ...odder.map(([name, text]) => odd(name, [{ bytes: (key, id) => [text.replace("KEY", key).replace("ID", id)] }])),
];

const odd = (name: string, sent: readonly Sent[]): Case => ({ room: "paths", name, sent });

const withMethod = (method: string, target: string, body: string): Sent => ({
  bytes: request(
    `${method} ${target} HTTP/1.1`,
    [
      ...(body === "" ? [] : ["Content-Type: application/json"]),
      // The client would wait for the body that its head announces.
      ...(method === "HEAD" ? ["Connection: close"] : []),
    ],
    body,
  ),
});

/** By name, what no builder of requests makes. */
const odder: [string, string][] = [
  ["HTTP/1.0", "GET /v1/models HTTP/1.0\r\nHost: h\r\nx-api-key: KEY\r\nX-Request-Id: ID\r\n\r\n"],
  ["HTTP/1.0 without a host", "GET /v1/models HTTP/1.0\r\nx-api-key: KEY\r\nX-Request-Id: ID\r\n\r\n"],
  ["HTTP/2.0", "GET /v1/models HTTP/2.0\r\nHost: h\r\nx-api-key: KEY\r\n\r\n"],
  ["no key", "GET /v1/models HTTP/1.1\r\nHost: h\r\nX-Request-Id: ID\r\n\r\n"],
  ["no key, as messages", "POST /v1/messages HTTP/1.1\r\nHost: h\r\nX-Request-Id: ID\r\nContent-Length: 2\r\n\r\n{}"],
  ["a wrong key", "GET /v1/models HTTP/1.1\r\nHost: h\r\nx-api-key: KEYx\r\nX-Request-Id: ID\r\n\r\n"],
  [
    "two keys",
    "GET /v1/models HTTP/1.1\r\nHost: h\r\nx-api-key: KEY\r\nAuthorization: Bearer x\r\nX-Request-Id: ID\r\n\r\n",
  ],
  ["a bearer in lower case", "GET /v1/x HTTP/1.1\r\nHost: h\r\nauthorization: bearer KEY\r\nX-Request-Id: ID\r\n\r\n"],
  ["basic", "GET /v1/x HTTP/1.1\r\nHost: h\r\nauthorization: Basic KEY\r\nX-Request-Id: ID\r\n\r\n"],
  [
    "two lengths that differ",
    "POST /v1/x HTTP/1.1\r\nHost: h\r\nx-api-key: KEY\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
  ],
  [
    "two lengths that are equal",
    "POST /v1/x HTTP/1.1\r\nHost: h\r\nx-api-key: KEY\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
  ],
  [
    "length and chunks",
    "POST /v1/x HTTP/1.1\r\nHost: h\r\nx-api-key: KEY\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
  ],
  [
    "chunks",
    "POST /v1/x HTTP/1.1\r\nHost: h\r\nx-api-key: KEY\r\nX-Request-Id: ID\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nA: b\r\n\r\n",
  ],
  [
    "a bad chunk",
    "POST /v1/x HTTP/1.1\r\nHost: h\r\nx-api-key: KEY\r\nX-Request-Id: ID\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
  ],
  [
    "an underscore",
    "GET /v1/x HTTP/1.1\r\nHost: h\r\nx-api-key: KEY\r\nX-Request-Id: ID\r\nX_Forwarded_For: 1.2.3.4\r\nContent_Length: 5\r\n\r\n",
  ],
  [
    "forwarding headers",
    "GET /v1/x HTTP/1.1\r\nHost: h\r\nx-api-key: KEY\r\nX-Request-Id: ID\r\nX-Forwarded-For: 1.2.3.4\r\nForwarded: for=1.2.3.4\r\nX-Real-IP: 1.2.3.4\r\n\r\n",
  ],
  [
    "hop headers",
    "GET /v1/x HTTP/1.1\r\nHost: h\r\nx-api-key: KEY\r\nX-Request-Id: ID\r\nConnection: X-Hop\r\nX-Hop: 1\r\nTE: trailers\r\nCookie: session=1\r\nUpgrade: h2c\r\n\r\n",
  ],
  ["debug", "GET /v1/x HTTP/1.1\r\nHost: h\r\nx-api-key: KEY\r\nX-Request-Id: ID\r\nx-tollgate-debug: 1\r\n\r\n"],
  [
    "expect",
    "POST /v1/x HTTP/1.1\r\nHost: h\r\nx-api-key: KEY\r\nX-Request-Id: ID\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
  ],
  ["a long id", `GET /v1/x HTTP/1.1\r\nHost: h\r\nx-api-key: KEY\r\nX-Request-Id: ID${"x".repeat(120)}\r\n\r\n`],
  ["a bare line feed", "GET /v1/x HTTP/1.1\nHost: h\nx-api-key: KEY\nX-Request-Id: ID\n\n"],
  ["a folded header", "GET /v1/x HTTP/1.1\r\nHost: h\r\nx-api-key: KEY\r\nX-Request-Id: ID\r\nX-A: 1\r\n 2\r\n\r\n"],
];

const preflights = (): Case[] =>
  [page, "http://localhost:3000", "https://evil.example", "null", ""].flatMap((origin) =>
    ["POST", "DELETE", "TRACE", ""].flatMap((method) =>
      ["/v1/chat/completions", "/v1/a/../b", "/v1", "/api/keys"].flatMap((target) =>
        ["OPTIONS", "GET"].map((verb): Case => {
          const headers = [
            ...(origin === "" ? [] : [`Origin: ${origin}`]),
            ...(method === "" ? [] : [`Access-Control-Request-Method: ${method}`]),
            "Access-Control-Request-Headers: authorization, x-stainless-os",
          ];
          const sent = [{ bytes: request(`${verb} ${target} HTTP/1.1`, headers) }];
          return { room: "preflights", name: `${verb} ${target}, origin ${origin}, for ${method}`, sent };
        }),
      ),
    ),
  );

/** The directives of the wire tests, less those that wait for seconds. */
const scripts = [
  ..."usage=3,4|usage=2000,2,900|no-usage|usage-null|no-done|usage=5,7; no-done|crlf; usage=3,4|comments; usage=3,4|split=20|tokens=1|tokens=40; usage=5,41".split(
    "|",
  ),
  ..."http10; usage=3,4|connection-close; usage=3,4|wrong-length=-5|wrong-length=5|truncate-json@2|error@2|body=64KB|body=64KB; gzip|huge-frame=100KB; usage=3,4".split(
    "|",
  ),
  ..."gap=30ms@0; die@0|gap=30ms@1; die@1|gap=30ms@3; die@3|gap=30ms@0; reset@0|gap=30ms@2; reset@2|reset-before-head|close-before-head".split(
    "|",
  ),
  ..."half-head|garbage".split("|"),
  ..."status=400|status=404|status=429|status=500|status=503|status=201|204|304|redirect|set-cookies|header=X-Accel-Redirect: /x|header=Retry-After: 5|header=Clear-Site-Data: *|long-head=20KB".split(
    "|",
  ),
  ..."early-hints; usage=3,4|early-response|gap=30ms@2; usage=3,4|slow-head=30ms; usage=3,4|strict|header=X-Request-Id: theirs|header=Content-Encoding: identity|header=Access-Control-Allow-Origin: *".split(
    "|",
  ),
];

const scripted = (): Case[] =>
  scripts.flatMap((script) =>
    Object.entries(ruleSets).flatMap(([rule, rules], at) =>
      [chat, streamed].map((body, index): Case => {
        const path = streamPaths[(at + index) % streamPaths.length] ?? "/v1/chat/completions";
        const input = body.replace('"max_tokens"', '"input":"Hi","prompt":"Hi","max_tokens"');
        const sent = [post(path, input, [`x-simulate: ${script}`])];
        return {
          room: "answers",
          name: `${script}, ${index === 0 ? "whole" : "streamed"} ${path}, ${rule}`,
          rules,
          sent,
        };
      }),
    ),
  );

const recorded = (): Case[] =>
  recordedResponses.flatMap(({ server, contentType, body }) =>
    Object.entries(ruleSets).flatMap(([rule, rules]) =>
      streamPaths.slice(0, rule === "tokens" ? 4 : 1).map((path): Case => {
        const isStream = contentType.startsWith("text/event-stream");
        const sent = [{ ...post(path, isStream ? streamed : chat), answer: whole(body, contentType) }];
        return { room: "answers", name: `${server}, ${path}, ${rule}`, rules, sent };
      }),
    ),
  );

const leaving = (): Case[] =>
  streamPaths.flatMap((path) =>
    Object.entries(ruleSets).flatMap(([rule, rules]) =>
      [1, 400].map((leavesAfter): Case => {
        const body = streamed.replace('"max_tokens":4', '"max_tokens":40,"input":"Hi","prompt":"Hi"');
        const sent = [{ ...post(path, body, ["x-simulate: usage=9,40; gap=forever@4"]), leavesAfter }];
        return { room: "answers", name: `left after ${leavesAfter} bytes, ${path}, ${rule}`, rules, sent };
      }),
    ),
  );

const encoders: Readonly<Record<string, (body: string) => Uint8Array>> = {
  gzip: (body) => gzipSync(body),
  br: (body) => brotliCompressSync(body),
  deflate: (body) => deflateSync(body),
  zstd: (body) => zstdCompressSync(body),
  "gzip, gzip": (body) => gzipSync(gzipSync(body)),
  "x-unknown": (body) => gzipSync(body),
  identity: (body) => Buffer.from(body),
};

const bodies = (): Case[] => {
  const long = '{"model":"claude-x","max_tokens":5000,"messages":[{"role":"user","content":"Hi"}]}';
  const codings = Object.entries(encoders).map(([name, encode]): [string, string | Uint8Array, string[]] => [
    name,
    encode(long),
    [`Content-Encoding: ${name}`],
  ]);
  const cut = encoders["gzip"]?.(long).slice(0, 40) ?? "";
  const texts: [string, string | Uint8Array, string[]][] = [
    ...codings,
    ["gzip that is plain", long, ["Content-Encoding: gzip"]],
    ["gzip that is cut", cut, ["Content-Encoding: gzip"]],
    ...hostileBodies.map(({ name, create }): [string, Uint8Array, string[]] => [name, create(3000), []]),
    ...recordings.flatMap(({ program, requests }) =>
      requests.slice(0, 2).map((one, at): [string, string, string[]] => {
        const text = withTexts(JSON.stringify({ ...one.body, stream: true }));
        return [
          `${program} ${at}, ${list(one.body["messages"]).length} messages`,
          text,
          [`User-Agent: ${one.userAgent}`],
        ];
      }),
    ),
  ];
  return texts.flatMap(([name, body, headers]) =>
    Object.entries(ruleSets).flatMap(([rule, rules]) =>
      ["/v1/chat/completions", "/v1/messages", "/v1/anything"].map((path): Case => {
        return { room: "bodies", name: `${name}, ${path}, ${rule}`, rules, sent: [post(path, body, headers)] };
      }),
    ),
  );
};

export const tableCases = (): Case[] => [
  ...paths(),
  ...preflights(),
  ...scripted(),
  ...recorded(),
  ...leaving(),
  ...bodies(),
];
