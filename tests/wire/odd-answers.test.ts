import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Simulator, startSimulator } from "../../src/simulator/simulator.ts";
import { connectRaw } from "../support/raw-client.ts";
import { startTollgate, type Tollgate } from "../support/tollgate.ts";

let backend: Simulator;
let gate: Tollgate;
beforeAll(async () => {
  backend = startSimulator();
  gate = await startTollgate({ PROXY_UPSTREAM_URL: backend.url, PROXY_NONSTREAM_READ_TIMEOUT: "1" });
});
afterAll(async () => {
  await gate[Symbol.asyncDispose]();
  backend.stop();
});

const okHead = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n";
const hello = `${okHead}Content-Length: 5\r\n\r\nhello`;
const intruder = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL";
const chunkedHello = "5\r\nhello\r\n0\r\n\r\n";
const many = (count: number): string => Array.from({ length: count }, (_, index) => `a${index}: 1\r\n`).join("");

interface OddAnswer {
  name: string;
  /** What the backend writes, each piece in a packet of its own. */
  pieces: string[];
  closes?: boolean;
  status: number;
  /** What the client gets; undefined where it gets one of our own errors, or a broken connection. */
  text?: string;
}

const passed = { status: 200, text: "hello" };
const refused = { status: 502 };

const answers: OddAnswer[] = [
  // What follows an answer must reach nobody.
  { name: "a second answer behind the first", pieces: [hello + intruder], ...passed },
  { name: "a second answer a little later", pieces: [hello, intruder], ...passed },
  { name: "junk behind the first", pieces: [`${hello}junk`], ...passed },
  {
    name: "a second answer behind the last chunk",
    pieces: [`${okHead}Transfer-Encoding: chunked\r\n\r\n${chunkedHello}${intruder}`],
    ...passed,
  },
  {
    name: "a second answer behind the last chunk of an event stream",
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
  { name: "a 204 with a second answer", pieces: [`HTTP/1.1 204 No Content\r\n\r\n${intruder}`], status: 204, text: "" },
  {
    name: "a 304 with a body",
    pieces: ["HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\nEVIL"],
    status: 304,
    text: "",
  },
  { name: "more than its length of 0", pieces: [`${okHead}Content-Length: 0\r\n\r\nEVIL`], status: 200, text: "" },
  // Framing that two readers could take in two ways.
  {
    name: "both a length and chunks",
    pieces: [`${okHead}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n${chunkedHello}`],
    ...passed,
  },
  { name: "two lengths", pieces: [`${okHead}Content-Length: 3\r\nContent-Length: 5\r\n\r\nhello`], ...refused },
  { name: "a negative length", pieces: [`${okHead}Content-Length: -5\r\n\r\nhello`], ...refused },
  { name: "a length in words", pieces: [`${okHead}Content-Length: five\r\n\r\nhello`], ...refused },
  {
    name: "a coding that is not known",
    pieces: [`${okHead}Transfer-Encoding: xchunked\r\n\r\n${chunkedHello}`],
    ...refused,
  },
  {
    name: "a coding that nobody asked for",
    pieces: [`${okHead}Transfer-Encoding: gzip, chunked\r\n\r\n${chunkedHello}`],
    ...refused,
  },
  // Heads.
  {
    name: "twenty early hints",
    pieces: [`${"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(20)}${hello}`],
    ...passed,
  },
  { name: "a 100 that nobody waits for", pieces: ["HTTP/1.1 100 Continue\r\n\r\n", hello], ...passed },
  {
    name: "a switch of protocols that nobody asked for",
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
    name: "a chunk that is none",
    pieces: [`${okHead}Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n`],
    status: 502,
  },
  {
    name: "a last chunk that never comes",
    pieces: [`${okHead}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n`],
    closes: true,
    status: 0,
  },
];

/** 0: the connection broke. */
async function ask(method: string, path: string, marker = ""): Promise<{ status: number; text: string }> {
  try {
    const response = await fetch(gate.url + path, { method, headers: { "x-api-key": gate.key, "x-marker": marker } });
    return { status: response.status, text: await response.text() };
  } catch {
    return { status: 0, text: "" };
  }
}

describe.each(["GET", "POST"])("to a %s, a backend's answer with", (method) => {
  test.each(answers.map((answer): [string, OddAnswer] => [answer.name, answer]))(
    "%s reaches that client alone, and the next ones get their own",
    async (_, { pieces, closes, status, text }) => {
      backend.handle(async (request, wire) => {
        if (request.path === "/v1/odd") {
          for (const piece of pieces) {
            wire.write(Buffer.from(piece, "latin1"));
            await Bun.sleep(2);
          }
          if (closes === true) wire.end();
          return;
        }
        const own = `own ${request.header("x-marker")}`;
        wire.write(`${okHead}Content-Length: ${own.length}\r\n\r\n${own}`);
      });
      const before = await gate.counted();
      const odd = await ask(method, "/v1/odd");
      expect(odd.status).toBe(status);
      if (text === undefined) expect(odd.text).not.toContain("hello");
      else expect(odd.text).toBe(text);
      // What came late must have arrived before the connection is used again.
      await Bun.sleep(5);
      for (const marker of ["1", "2"]) {
        expect(await ask(method, "/v1/next", marker)).toEqual({ status: 200, text: `own ${marker}` });
      }
      const isCounted = status >= 200 && status < 300;
      expect((await gate.counted()).total_request_count).toBe(before.total_request_count + (isCounted ? 3 : 2));
    },
  );
});

describe("an answer without a content type", () => {
  test.each([
    ["of JSON", '{"data":[]}', "/v1/anything"],
    ["of nothing", "", "/v1/anything"],
    ["that is a list of models", '{"data":[{"id":"m"}]}', "/v1/models"],
  ])("%s gets none on its way", async (_, body, path) => {
    backend.handle((__, wire) => {
      wire.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
    });
    const client = await connectRaw(gate.url);
    client.request("GET", path, { "x-api-key": gate.key });
    const head = await client.head();
    expect(head.header("content-type")).toBeUndefined();
    expect(head.header("content-length")).toBe(String(body.length));
    expect(await client.text()).toBe(body);
    client.close();
  });
});
