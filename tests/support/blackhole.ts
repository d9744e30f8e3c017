import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { dlopen, ptr } from "bun:ffi";

export type BusyBackend = ReturnType<typeof startBusyBackend>;

const afInet = 2;
const sockStream = 1;
const sockCloexec = 0o2_000_000;
const solSocket = 1;
const soReuseaddr = 2;
const addressBytes = 16;

/** Room for a request without a body. */
const requestBytes = 16_384;

/** 0: a free one. */
const anyPort = { host: "127.0.0.1", port: 0 };

/** A port at which the queue of connections is full: it neither accepts nor refuses any. */
export async function startBlackhole(at = anyPort) {
  const backend = startBusyBackend(at);
  const filler = connect(backend.port, at.host);
  await new Promise((resolve) => filler.once("connect", resolve));
  return {
    url: backend.url,
    port: backend.port,
    [Symbol.dispose]() {
      filler.destroy();
      backend[Symbol.dispose]();
    },
  };
}

/**
 * A listening socket whose queue has room for one connection. Nothing accepts it, and Linux drops every further SYN.
 * Through libc, because neither Bun nor its node:net passes a backlog on (1.4.5).
 * Remove the calls of libc when `backlog` of node:net reaches the kernel.
 */
export function startBusyBackend(at = anyPort) {
  const libc = openLibc();
  const { socket, setsockopt, bind, listen, getsockname, accept, recv, send, close } = libc.symbols;
  const address = Buffer.alloc(addressBytes);
  address.writeUInt16LE(afInet);
  address.writeUInt16BE(at.port, 2);
  address.set(at.host.split(".").map(Number), 4);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(addressBytes);
  const descriptor = socket(afInet, sockStream | sockCloexec, 0);
  // A port may be taken over whose connections were closed just now.
  setsockopt(descriptor, solSocket, soReuseaddr, ptr(Buffer.from([1, 0, 0, 0])), 4);
  const failures = bind(descriptor, ptr(address), addressBytes) + listen(descriptor, 0);
  if (descriptor < 0 || failures + getsockname(descriptor, ptr(address), ptr(length)) !== 0) {
    throw new Error("The blackhole's socket could not be opened");
  }
  const port = address.readUInt16BE(2);
  const kept: number[] = [];
  return {
    url: `http://${at.host}:${port}`,
    port,
    /** Whether the one place in the queue is taken. */
    isTaken: () => queueLength(port) > 0,
    /**
     * Accepts the connection in the queue, reads its request and responds with 200. Linux then has room for another one.
     * @param keep leaves the connection open, and never reads from it again
     */
    respond(keep?: "keep"): void {
      const connection = accept(descriptor, null, null);
      recv(connection, ptr(Buffer.alloc(requestBytes)), requestBytes, 0);
      const response = Buffer.from(`HTTP/1.1 200 OK\r\nConnection: ${keep ?? "close"}\r\nContent-Length: 2\r\n\r\nok`);
      send(connection, ptr(response), response.length, 0);
      if (keep === undefined) close(connection);
      else kept.push(connection);
    },
    [Symbol.dispose]() {
      for (const one of [descriptor, ...kept]) close(one);
      libc.close();
    },
  };
}

/** proc_net_tcp(5): of a listening socket, state 0A, the second number of `tx_queue:rx_queue` is the length of its queue. */
function queueLength(port: number): number {
  const local = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const sockets = readFileSync("/proc/self/net/tcp", "utf8")
    .split("\n")
    .map((line) => line.trim().split(/\s+/));
  const queues = sockets.find(([, address = "", , state]) => address.endsWith(local) && state === "0A")?.[4] ?? "";
  return Number.parseInt(queues.split(":")[1] ?? "0", 16);
}

function openLibc() {
  return dlopen("libc.so.6", {
    socket: { args: ["i32", "i32", "i32"], returns: "i32" },
    setsockopt: { args: ["i32", "i32", "i32", "ptr", "u32"], returns: "i32" },
    bind: { args: ["i32", "ptr", "u32"], returns: "i32" },
    listen: { args: ["i32", "i32"], returns: "i32" },
    getsockname: { args: ["i32", "ptr", "ptr"], returns: "i32" },
    accept: { args: ["i32", "ptr", "ptr"], returns: "i32" },
    recv: { args: ["i32", "ptr", "u64", "i32"], returns: "i64" },
    send: { args: ["i32", "ptr", "u64", "i32"], returns: "i64" },
    close: { args: ["i32"], returns: "i32" },
  });
}
