import type { Socket } from "bun";

interface Side {
  other: Promise<Socket<Side>>;
  isServer: boolean;
  losesResponse: { value: boolean };
}

/** A TCP proxy on loopback that can lose a response. */
export function startFaultyProxy(serverPort: number) {
  let doomed: string | undefined;
  let lost = 0;
  const handlers = {
    async data(socket: Socket<Side>, bytes: Buffer) {
      const { other, isServer, losesResponse } = socket.data;
      if (isServer && losesResponse.value) {
        lost++;
        socket.end();
        (await other).terminate();
        return;
      }
      if (!isServer && doomed !== undefined && bytes.includes(doomed)) {
        doomed = undefined;
        losesResponse.value = true;
      }
      (await other).write(bytes);
    },
    async close({ data }: Socket<Side>) {
      (await data.other).end();
    },
  };
  const listener = Bun.listen<Side>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      ...handlers,
      open(client) {
        const losesResponse = { value: false };
        const own: Side = { other: Promise.resolve(client), isServer: true, losesResponse };
        const server = Bun.connect<Side>({ hostname: "127.0.0.1", port: serverPort, socket: handlers, data: own });
        client.data = { other: server, isServer: false, losesResponse };
      },
    },
  });
  return {
    port: listener.port,
    /** Applies once. The next message with this text reaches the server; its response is dropped and the client's connection broken. */
    loseResponseTo: (text: string) => void (doomed = text),
    /** How many responses were lost. */
    lost: () => lost,
    [Symbol.dispose]: () => listener.stop(true),
  };
}
