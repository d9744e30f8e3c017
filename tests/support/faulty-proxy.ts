import type { Socket } from "bun";

/** Stands between a client and a server on loopback, and lets an answer get lost. */
export interface FaultyProxy extends Disposable {
  port: number;
  /** Once: what next holds this text reaches the server, its answer does not reach the client, whose connection breaks. */
  loseAnswerTo(text: string): void;
  /** How many answers were lost. */
  lost(): number;
}

interface Side {
  other: Promise<Socket<Side>>;
  isServer: boolean;
  answerIsLost: { value: boolean };
}

export function startFaultyProxy(serverPort: number): FaultyProxy {
  let doomed: string | undefined;
  let lost = 0;
  const handlers = {
    async data(socket: Socket<Side>, bytes: Buffer) {
      const { other, isServer, answerIsLost } = socket.data;
      if (isServer && answerIsLost.value) {
        lost++;
        socket.end();
        (await other).terminate();
        return;
      }
      if (!isServer && doomed !== undefined && bytes.includes(doomed)) {
        doomed = undefined;
        answerIsLost.value = true;
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
        const answerIsLost = { value: false };
        const own: Side = { other: Promise.resolve(client), isServer: true, answerIsLost };
        const server = Bun.connect<Side>({ hostname: "127.0.0.1", port: serverPort, socket: handlers, data: own });
        client.data = { other: server, isServer: false, answerIsLost };
      },
    },
  });
  return {
    port: listener.port,
    loseAnswerTo: (text) => void (doomed = text),
    lost: () => lost,
    [Symbol.dispose]: () => listener.stop(true),
  };
}
