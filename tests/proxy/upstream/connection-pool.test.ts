import { afterAll, describe, expect, test } from "bun:test";
import type { Socket } from "bun";
import { type ConnectionPool, createConnectionPools, staysOpen } from "../../../src/proxy/upstream/connections.ts";
import { createRandom } from "../../support/random.ts";

interface Connection {
  number: number;
}

let connections = 0;
let onRequest = (_socket: Socket<Connection>): void => {};

const listen = () =>
  Bun.listen<Connection>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open(socket) {
        socket.data = { number: connections++ };
      },
      data(socket, bytes) {
        // A head; the body may come in a packet of its own.
        if (bytes.includes("HTTP/1.1")) onRequest(socket);
      },
      error() {},
    },
  });
const backends = [listen(), listen(), listen()];
afterAll(() => {
  for (const backend of backends) backend.stop(true);
});

const [url = "", ...otherUrls] = backends.map(({ port }) => `http://127.0.0.1:${port}/`);
const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

describe("the model of the pool", () => {
  interface Sent {
    /** The number of its connection. */
    connection: number;
    /** Responds, and resolves once the response was read. */
    end: () => Promise<void>;
  }

  /** @returns also how long the connection has been idle; undefined if it is new */
  function takeFrom(pool: ConnectionPool): { idleMs: number | undefined; putBack: () => void } {
    let idleMs: number | undefined;
    const putBack = pool.take((ms) => {
      idleMs = ms;
      return true;
    });
    if (putBack === undefined) throw new Error("the pool gave no connection");
    return { idleMs, putBack };
  }

  /** Sends a request and waits until the backend has it. */
  async function send(to = url): Promise<Sent> {
    const received = Promise.withResolvers<Socket<Connection>>();
    onRequest = received.resolve;
    const response = fetch(to, { method: "POST", body: "{}" });
    const socket = await received.promise;
    return {
      connection: socket.data.number,
      async end() {
        socket.write(ok);
        await (await response).text();
      },
    };
  }

  test("holds as many connections as fetch", async () => {
    const pool = createConnectionPools(() => 0)(url);
    const fill = async () => {
      const requests: (Sent & { putBack: () => void; isNew: boolean })[] = [];
      for (let count = 0; count < 80; count += 1) {
        const { idleMs, putBack } = takeFrom(pool);
        requests.push({ isNew: idleMs === undefined, putBack, ...(await send()) });
      }
      for (const { end, putBack } of requests) {
        await end();
        putBack();
      }
      return requests.filter(({ isNew }) => isNew).length;
    };
    await fill();
    const before = connections;
    expect(await fill()).toBe(connections - before);
  });

  test("names the connection that fetch takes to each of several hosts, which share its places", async () => {
    const random = createRandom(15);
    let now = 0;
    const poolOf = createConnectionPools(() => now);
    const hosts = [url, ...otherUrls].map((to) => ({ to, pool: poolOf(to) }));
    const putAt = new Map<number, number>();
    const running: (() => Promise<void>)[] = [];
    let taken = 0;
    for (now = 1; now < 1_500; now += 1) {
      // Grows past the places of all, and shrinks again, twice.
      if (random.below(750) > now % 750) {
        const host = hosts[random.below(hosts.length)];
        if (host === undefined) throw new Error("there is no such host");
        const { idleMs, putBack } = takeFrom(host.pool);
        const { connection, end } = await send(host.to);
        if (idleMs !== undefined) taken += 1;
        // Those of the tests before are not known here.
        if (idleMs !== undefined || putAt.has(connection)) {
          expect(putAt.get(connection)).toBe(idleMs === undefined ? undefined : now - idleMs);
        }
        putAt.delete(connection);
        running.push(async () => {
          await end();
          putBack();
          putAt.set(connection, now);
        });
      } else if (running.length > 0) {
        const [end] = running.splice(random.below(running.length), 1);
        await end?.();
      }
    }
    for (const end of running) await end();
    expect(taken).toBeGreaterThan(100);
  });
});

test.each([
  [0, true],
  [1_499, true],
  [1_500, false],
  [2_000, false],
  [5_000, false],
  [7_999, false],
  [8_000, true],
])("a connection that has been idle for %p ms stays open: %p", (idleMs, expected) => {
  expect(staysOpen(idleMs)).toBe(expected);
});

test("a connection that is not fit stays in the pool, and a new one is not asked about", () => {
  let now = 0;
  const pool = createConnectionPools(() => now)(url);
  const asked: number[] = [];
  const refuse = (idleMs: number): boolean => {
    asked.push(idleMs);
    return false;
  };
  pool.take(refuse)?.();
  now = 5;
  expect(pool.take(refuse)).toBeUndefined();
  now = 7;
  expect(pool.take(refuse)).toBeUndefined();
  expect(asked).toEqual([5, 7]);
});
