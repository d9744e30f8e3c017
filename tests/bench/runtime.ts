/**
 * What the runtime itself costs a proxy, each case in as few lines as it takes: `bun tests/bench/runtime.ts`. CPU time of
 * this process alone, over all its threads, as a median; the other end of a connection is a child process.
 */
import { connect } from "node:net";
import { createBag } from "../../src/runtime/bag.ts";
import { median } from "./results.ts";

const requestsPerRound = 4000;
const chunksPerRound = 100_000;
const objectsPerRound = 50_000;
const rounds = 5;

type Case = readonly [name: string, count: number, run: (count: number) => Promise<void>];

async function drain(stream: ReadableStream<Uint8Array> | null): Promise<void> {
  const reader = stream?.getReader();
  for (let isDone = reader === undefined; !isDone;) isDone = (await reader?.read())?.done ?? true;
}

async function repeat(count: number, act: () => Promise<unknown>): Promise<void> {
  for (let n = 0; n < count; n++) await act();
}

function chunks(count: number): ReadableStream<Uint8Array> {
  const chunk = new Uint8Array(200);
  let left = count;
  return new ReadableStream({
    pull(controller) {
      if (left-- > 0) controller.enqueue(chunk);
      else controller.close();
    },
  });
}

/** One request after the other over one connection, without a parser: the response fits into one read. */
function requestsOverSocket(port: number, count: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const request = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";
  let left = count;
  const socket = connect(port, "127.0.0.1", () => socket.write(request));
  socket.on("error", reject);
  socket.on("data", () => {
    if (--left > 0) return void socket.write(request);
    socket.destroy();
    return resolve();
  });
  return promise;
}

type Add = (item: object) => () => void;

/** Objects of 5 kB, of which eight are there at a time. */
async function comeAndGo(count: number, add: Add): Promise<void> {
  const removals: (() => void)[] = [];
  for (let n = 0; n < count; n++) {
    removals.push(add(Array.from({ length: 600 }).fill(n)));
    if (removals.length > 8) removals.shift()?.();
    if (n % 1000 === 0) await new Promise(setImmediate);
  }
  for (const remove of removals) remove();
}

function addToMap(): Add {
  const map = new Map<object, boolean>();
  return (item) => {
    map.set(item, true);
    return () => void map.delete(item);
  };
}

const casesOf = (port: number): Case[] => {
  const url = `http://127.0.0.1:${port}/`;
  const readBytes = async (init?: RequestInit): Promise<unknown> => (await fetch(url, init)).bytes();
  return [
    ["a request over a socket", requestsPerRound, (count) => requestsOverSocket(port, count)],
    ["a request with fetch, read as bytes", requestsPerRound, (count) => repeat(count, () => readBytes())],
    [
      "a request with fetch and a signal",
      requestsPerRound,
      (count) => repeat(count, () => readBytes({ signal: new AbortController().signal })),
    ],
    [
      "a request with fetch, read as a stream",
      requestsPerRound,
      (count) => repeat(count, async () => drain((await fetch(url)).body)),
    ],
    ["a chunk through a ReadableStream", chunksPerRound, (count) => drain(chunks(count))],
    [
      "a chunk through a TransformStream too",
      chunksPerRound,
      (count) => drain(chunks(count).pipeThrough(new TransformStream())),
    ],
    ["an object that comes and goes in an array", objectsPerRound, (count) => comeAndGo(count, createBag().add)],
    ["an object that comes and goes in a Map", objectsPerRound, (count) => comeAndGo(count, addToMap())],
  ];
};

async function measure([name, count, run]: Case): Promise<void> {
  const costs: number[] = [];
  await run(count);
  for (let round = 0; round < rounds; round++) {
    const before = process.cpuUsage();
    await run(count);
    const { user, system } = process.cpuUsage(before);
    costs.push((user + system) / count);
  }
  process.stdout.write(`${median(costs).toFixed(1).padStart(7)} µs  ${name}\n`);
}

async function measureAll(): Promise<void> {
  await using backend = Bun.spawn([process.execPath, import.meta.path, "backend"], { stdout: "pipe" });
  const { value } = await backend.stdout.getReader().read();
  for (const one of casesOf(Number(new TextDecoder().decode(value)))) await measure(one);
}

if (process.argv[2] === "backend") {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("{}") });
  process.stdout.write(String(server.port));
} else {
  await measureAll();
}
