import { connect, createServer, type Socket } from "node:net";

/** Writes bytes to a loopback port. @returns everything that was received when the connection closed */
export function exchange(port: number, bytes: string, onData: () => void = () => {}): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  let received = "";
  const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
  socket.setEncoding("latin1");
  socket.on("data", (text: string) => {
    received += text;
    onData();
  });
  socket.on("error", () => {});
  socket.on("close", () => resolve(received));
  return promise;
}

export interface RawServer extends Disposable {
  url: string;
  /** Connections so far. */
  connections: () => number;
}

/** A TCP server on loopback. @param onRequest gets the number of the request on its connection, from 1 */
export async function serveRaw(onRequest: (socket: Socket, number: number) => void): Promise<RawServer> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    let requests = 0;
    socket.on("error", () => {});
    socket.on("data", () => onRequest(socket, ++requests));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${port}/`,
    connections: () => sockets.size,
    [Symbol.dispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
