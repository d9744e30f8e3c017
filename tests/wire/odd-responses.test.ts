import { describe, expect, test } from "bun:test";
import { startSimulator } from "../support/simulator/simulator.ts";
import { pollUntil } from "../support/poll-until.ts";
import { shared } from "../support/shared.ts";
import { startTollgate } from "../support/tollgate.ts";
import { unreadBytes } from "../support/unread-bytes.ts";

const backend = shared(() => startSimulator());
const gate = shared(() => startTollgate({ PROXY_UPSTREAM_URL: backend.url, PROXY_NONSTREAM_READ_TIMEOUT: "3" }));

const okHead = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n";
const hello = `${okHead}Content-Length: 5\r\n\r\nhello`;
const intruder = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL";
const chunkedHello = "5\r\nhello\r\n0\r\n\r\n";
const many = (count: number): string => Array.from({ length: count }, (_, index) => `a${index}: 1\r\n`).join("");

interface OddResponse {
  name: string;
  /** What the backend writes, each piece in its own packet. */
  pieces: string[];
  closes?: boolean;
  status: number;
  /** The body that the client gets; undefined if it gets an error of Tollgate's or a broken connection. */
  text?: string;
}

const passed = { status: 200, text: "hello" };
const refused = { status: 502 };

const oddResponses: OddResponse[] = [
  // Bytes after a response must reach no client.
  { name: "a second response after the first", pieces: [hello + intruder], ...passed },
  { name: "a second response a little later", pieces: [hello, intruder], ...passed },
  { name: "junk after the first", pieces: [`${hello}junk`], ...passed },
  {
    name: "a second response after the last chunk",
    pieces: [`${okHead}Transfer-Encoding: chunked\r\n\r\n${chunkedHello}${intruder}`],
    ...passed,
  },
  {
    name: "a second response after the last chunk of an event stream",
    pieces: [
      `HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n${chunkedHello}${intruder}`,
    ],
    ...passed,
  },
  {
    name: "a 204 with a body",
    pieces: ["HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\nEVIL"],
    status: 204,
    text: "",
  },
  {
    name: "a 204 with a second response",
    pieces: [`HTTP/1.1 204 No Content\r\n\r\n${intruder}`],
    status: 204,
    text: "",
  },
  {
    name: "a 304 with a body",
    pieces: ["HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\nEVIL"],
    status: 304,
    text: "",
  },
  { name: "more than its length of 0", pieces: [`${okHead}Content-Length: 0\r\n\r\nEVIL`], status: 200, text: "" },
  // Ambiguous framing.
  {
    name: "both a length and chunks",
    pieces: [`${okHead}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n${chunkedHello}`],
    ...passed,
  },
  { name: "two lengths", pieces: [`${okHead}Content-Length: 3\r\nContent-Length: 5\r\n\r\nhello`], ...refused },
  { name: "a negative length", pieces: [`${okHead}Content-Length: -5\r\n\r\nhello`], ...refused },
  { name: "a length in words", pieces: [`${okHead}Content-Length: five\r\n\r\nhello`], ...refused },
  {
    name: "an unknown coding",
    pieces: [`${okHead}Transfer-Encoding: xchunked\r\n\r\n${chunkedHello}`],
    ...refused,
  },
  {
    name: "a coding that was not requested",
    pieces: [`${okHead}Transfer-Encoding: gzip, chunked\r\n\r\n${chunkedHello}`],
    ...refused,
  },
  // Heads.
  {
    name: "twenty early hints",
    pieces: [`${"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(20)}${hello}`],
    ...passed,
  },
  { name: "an unexpected 100", pieces: ["HTTP/1.1 100 Continue\r\n\r\n", hello], ...passed },
  {
    name: "an unexpected switch of protocols",
    pieces: ["HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nhello"],
    ...refused,
  },
  { name: "a status line of HTTP/2", pieces: ["HTTP/2.0 200 OK\r\nContent-Length: 5\r\n\r\nhello"], ...refused },
  { name: "no reason phrase", pieces: ["HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello"], ...passed },
  { name: "a header without a colon", pieces: [`${okHead}foo\r\nContent-Length: 5\r\n\r\nhello`], ...refused },
  { name: "a folded header", pieces: [`${okHead}X-A: a\r\n b\r\nContent-Length: 5\r\n\r\nhello`], ...refused },
  { name: "a NUL in a header", pieces: [`${okHead}X-A: a\0b\r\nContent-Length: 5\r\n\r\nhello`], ...refused },
  { name: "a bare CR in a header", pieces: [`${okHead}X-A: a\rX-B: b\r\nContent-Length: 5\r\n\r\nhello`], ...refused },
  { name: "300 headers", pieces: [`${okHead}${many(300)}Content-Length: 5\r\n\r\nhello`], ...refused },
  { name: "half a head, and then nothing", pieces: ["HTTP/1.1 200 OK\r\nContent-"], status: 504 },
  { name: "eight bytes that are not HTTP, and then nothing", pieces: ["\u0001\u0002 no\r\n\r\n"], status: 504 },
  // Ends.
  { name: "a body that ends with the connection", pieces: [`${okHead}\r\nhel`, "lo"], closes: true, ...passed },
  {
    name: "an invalid chunk",
    pieces: [`${okHead}Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n`],
    status: 502,
  },
  {
    name: "no last chunk",
    pieces: [`${okHead}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n`],
    closes: true,
    status: 0,
  },
];

/** @returns status 0 if the connection broke */
async function send(method: string, path: string, marker = ""): Promise<{ status: number; text: string }> {
  try {
    const response = await gate.send(path, undefined, { method, headers: { "x-marker": marker } });
    return { status: response.status, text: await response.text() };
  } catch {
    return { status: 0, text: "" };
  }
}

describe.each(["GET", "POST"])("a backend's response to %s with", (method) => {
  test.each(oddResponses.map((response): [string, OddResponse] => [response.name, response]))(
    "%s reaches only that client, and the next ones get their own",
    async (_, { pieces, closes, status, text }) => {
      backend.handle(async (request, wire) => {
        if (request.path === "/v1/odd") {
          for (const piece of pieces) {
            wire.write(Buffer.from(piece, "latin1"));
            // Plays a backend that pauses, so that each piece is a packet of its own.
            await Bun.sleep(2);
          }
          if (closes === true) wire.end();
          written.resolve();
          return;
        }
        const own = `own ${request.header("x-marker")}`;
        wire.write(`${okHead}Content-Length: ${own.length}\r\n\r\n${own}`);
      });
      const written = Promise.withResolvers<void>();
      const before = await gate.readKey();
      const odd = await send(method, "/v1/odd");
      // A break that comes with the head leaves an error to give.
      expect(status === 0 ? [0, 502] : [status]).toContain(odd.status);
      if (text === undefined) expect(odd.text).not.toContain("hello");
      else expect(odd.text).toBe(text);
      // Late pieces must arrive before the connection is used again.
      await written.promise;
      await pollUntil(() => unreadBytes(backend.port) === 0);
      for (const marker of ["1", "2"]) {
        expect(await send(method, "/v1/next", marker)).toEqual({ status: 200, text: `own ${marker}` });
      }
      const isCounted = status >= 200 && status < 300;
      expect((await gate.readKey()).total_request_count).toBe(before.total_request_count + (isCounted ? 3 : 2));
    },
  );
});

test.each([
  [256, 200],
  [257, 502],
])("a response with %i header fields gives the client %i", async (count, status) => {
  backend.handle((_, wire) => {
    wire.write(`${okHead}${many(count - 2)}Content-Length: 5\r\n\r\nhello`);
  });
  const client = await gate.sendRaw("/v1/anything");
  expect((await client.head()).status).toBe(status);
  client.close();
});

test("trailers of a response are dropped", async () => {
  backend.handle((_, wire) => {
    wire.write(`${okHead}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nx-sum: 1\r\n\r\n`);
  });
  const client = await gate.sendRaw("/v1/anything", undefined, { headers: { te: "trailers" } });
  expect(await client.ended()).toBe("complete");
  expect(client.received().toString()).not.toContain("x-sum");
  client.close();
});

describe("a response without a content type", () => {
  test.each([
    ["with a JSON body", '{"data":[]}', "/v1/anything"],
    ["without a body", "", "/v1/anything"],
    ["with a list of models", '{"data":[{"id":"m"}]}', "/v1/models"],
  ])("%s gets none added", async (_, body, path) => {
    backend.handle((__, wire) => {
      wire.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    });
    const client = await gate.sendRaw(path);
    const head = await client.head();
    expect(head.header("content-type")).toBeUndefined();
    expect(head.header("content-length")).toBe(String(body.length));
    expect(await client.text()).toBe(body);
    client.close();
  });
});
