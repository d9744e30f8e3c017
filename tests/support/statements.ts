import type { Socket } from "bun";

/** A TCP proxy before PostgreSQL that hears which statements are executed. */
export interface HeardStatements extends Disposable {
  port: number;
  /** Their texts, in order. */
  executed: string[];
}

interface Side {
  other: Promise<Socket<Side>>;
  /** What is left of the client's messages; undefined: it is the server. */
  pending: Buffer | undefined;
  isStarted: boolean;
  /** The texts of prepared statements, by name. */
  names: Map<string, string>;
}

export function hearStatements(serverPort: number): HeardStatements {
  const executed: string[] = [];

  /** A message has a type of one byte and a length of four, but for the first. */
  function hear(side: Side, bytes: Buffer): void {
    let pending = Buffer.concat([side.pending ?? Buffer.alloc(0), bytes]);
    for (;;) {
      const at = side.isStarted ? 1 : 0;
      if (pending.length < at + 4 || pending.length < at + pending.readInt32BE(at)) break;
      const end = at + pending.readInt32BE(at);
      const [first = "", second = ""] = pending.toString("utf8", at + 4, end).split("\0");
      const type = side.isStarted ? String.fromCharCode(pending[0] ?? 0) : "";
      if (type === "P") side.names.set(first, second);
      // The first text of a Bind names the portal.
      if (type === "B") executed.push(side.names.get(second) ?? "");
      if (type === "Q") executed.push(first);
      side.isStarted = true;
      pending = pending.subarray(end);
    }
    side.pending = pending;
  }

  const socket = {
    async data({ data: side }: Socket<Side>, bytes: Buffer) {
      const copy = Buffer.from(bytes);
      if (side.pending !== undefined) hear(side, copy);
      (await side.other).write(copy);
    },
    async close({ data }: Socket<Side>) {
      (await data.other).end();
    },
  };
  const side = (other: Side["other"], pending?: Buffer): Side => ({
    other,
    pending,
    isStarted: false,
    names: new Map(),
  });
  const listener = Bun.listen<Side>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      ...socket,
      open(client) {
        const data = side(Promise.resolve(client));
        const server = Bun.connect<Side>({ hostname: "127.0.0.1", port: serverPort, socket, data });
        client.data = side(server, Buffer.alloc(0));
      },
    },
  });
  return { port: listener.port, executed, [Symbol.dispose]: () => listener.stop(true) };
}
