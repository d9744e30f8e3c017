import { expect, test } from "bun:test";
import { createRequestParser, MalformedRequest, type RequestHead } from "./request-parser.ts";

function parse(parts: readonly string[]) {
  const heads: RequestHead[] = [];
  let body = "";
  let ends = 0;
  const feed = createRequestParser({
    head: (head) => void heads.push(head),
    body: (bytes) => void (body += Buffer.from(bytes).toString("latin1")),
    end: () => void ends++,
  });
  let rest: Buffer | undefined;
  for (const part of parts) rest = feed(Buffer.from(part, "latin1"));
  return { heads, body, ends, rest: rest?.toString("latin1") };
}

const messages = {
  "without a body": ["GET /v1/models HTTP/1.1\r\nHost: a\r\n\r\n", ""],
  "with a length": ["POST /v1/x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", "hello"],
  "in chunks": [
    "POST /v1/x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;a=b\r\nlo\r\n0\r\nTrailer: 1\r\n\r\n",
    "hello",
  ],
  "in chunks that hold line ends": [
    "POST /v1/x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n\r\n\r\n\r\n0\r\n\r\n",
    "\r\n\r\n",
  ],
} as const;

for (const [name, [message, body]] of Object.entries(messages)) {
  test(`a request ${name} is parsed the same wherever it is cut`, () => {
    for (let cut = 1; cut < message.length; cut++) {
      const read = parse([message.slice(0, cut), message.slice(cut)]);
      expect(read).toMatchObject({ body, ends: 1, rest: "" });
      expect(read.heads).toHaveLength(1);
    }
  });
}

test("the bytes after a request are returned for the next one", () => {
  const { body, rest } = parse(["POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nokGET /next"]);
  expect(body).toBe("ok");
  expect(rest).toBe("GET /next");
});

test("target and headers keep their spelling and order", () => {
  const { heads } = parse(["GET //a%2f..;b?c=%41#d HTTP/1.1\r\nX-b: 1 \r\nx-B:2\r\nEmpty:\r\n\r\n"]);
  expect(heads[0]).toEqual({
    method: "GET",
    target: "//a%2f..;b?c=%41#d",
    headers: [
      ["X-b", "1"],
      ["x-B", "2"],
      ["Empty", ""],
    ],
  });
});

for (const malformed of [
  "HELLO\r\n\r\n",
  "GET / HTTP/2\r\n\r\n",
  "GET / HTTP/1.1\r\nno colon\r\n\r\n",
  "POST / HTTP/1.1\r\nContent-Length: many\r\n\r\n",
  "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
]) {
  test(`${JSON.stringify(malformed)} is refused`, () => {
    expect(() => parse([malformed])).toThrow(MalformedRequest);
  });
}
