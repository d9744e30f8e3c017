import { connect } from "node:net";
import { dlopen, ptr } from "bun:ffi";

export interface Blackhole extends Disposable {
  /** An origin that neither accepts nor refuses connections. */
  url: string;
  port: number;
}

const afInet = 2;
const sockStream = 1;
const sockCloexec = 0o2_000_000;
const addressBytes = 16;

/**
 * A listening socket with room for one queued connection, which is taken: Linux drops every further SYN.
 * Uses libc because neither Bun.listen nor Bun's node:net passes the backlog on (1.4.5).
 * Remove the calls of libc when `backlog` of node:net reaches the kernel.
 */
export async function startBlackhole(): Promise<Blackhole> {
  const libc = dlopen("libc.so.6", {
    socket: { args: ["i32", "i32", "i32"], returns: "i32" },
    bind: { args: ["i32", "ptr", "u32"], returns: "i32" },
    listen: { args: ["i32", "i32"], returns: "i32" },
    getsockname: { args: ["i32", "ptr", "ptr"], returns: "i32" },
    close: { args: ["i32"], returns: "i32" },
  });
  const { socket, bind, listen, getsockname, close } = libc.symbols;
  const address = Buffer.alloc(addressBytes);
  address.writeUInt16LE(afInet);
  address.set([127, 0, 0, 1], 4);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(addressBytes);
  const descriptor = socket(afInet, sockStream | sockCloexec, 0);
  const failures = bind(descriptor, ptr(address), addressBytes) + listen(descriptor, 0);
  if (descriptor < 0 || failures + getsockname(descriptor, ptr(address), ptr(length)) !== 0) {
    throw new Error("The blackhole's socket could not be opened");
  }
  const port = address.readUInt16BE(2);
  const filler = connect(port, "127.0.0.1");
  await new Promise((resolve) => filler.once("connect", resolve));
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    [Symbol.dispose]() {
      filler.destroy();
      close(descriptor);
      libc.close();
    },
  };
}
