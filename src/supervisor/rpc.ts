type Methods = object;
type Method<M extends Methods, N extends keyof M> = M[N] extends (...args: infer A) => infer R
  ? { args: A; result: Awaited<R> }
  : never;

/** One end of a channel between two processes; both ends can call methods of the other. */
export type Rpc<Remote extends Methods> = ReturnType<typeof createRpc<Remote>>;

const channelClosed = "the other process is gone";

interface Message {
  id: number;
  /** Absent in a reply. */
  call?: string;
  args?: unknown[];
  result?: unknown;
  failed?: boolean;
}

interface PendingCall {
  resolve: (result: never) => void;
  reject: (error: Error) => void;
  timer: Timer;
}

/** @param send throws if the channel is closed */
export function createRpc<Remote extends Methods>(own: Methods, send: (message: object) => void, timeoutMs: number) {
  const pending = new Map<number, PendingCall>();
  let nextId = 1;
  let closed = false;

  function conclude(id: number, how: (call: PendingCall) => void): void {
    const call = pending.get(id);
    pending.delete(id);
    if (call === undefined) return;
    clearTimeout(call.timer);
    how(call);
  }

  const fail = (id: number, reason: string): void => conclude(id, ({ reject }) => reject(new Error(reason)));

  async function reply({ id, call = "", args = [] }: Message): Promise<void> {
    const method = (own as Record<string, ((...args: unknown[]) => unknown) | undefined>)[call];
    const message = await Promise.try(() => method?.(...args)).then(
      (result) => ({ id, result }),
      () => ({ id, failed: true }),
    );
    try {
      send(message);
    } catch {
      // The caller is gone.
    }
  }

  return {
    /** Rejects if the remote method fails, its result does not arrive in time, or the channel is closed. */
    call: <N extends keyof Remote & string>(name: N, ...args: Method<Remote, N>["args"]) =>
      new Promise<Method<Remote, N>["result"]>((resolve, reject) => {
        // `process.send` does not throw on a closed channel.
        if (closed) throw new Error(channelClosed);
        const id = nextId++;
        send({ id, call: name, args } satisfies Message);
        const timer = setTimeout(() => fail(id, `no reply to ${name} in time`), timeoutMs);
        pending.set(id, { resolve, reject, timer });
      }),
    /** Takes a message that arrived over the channel. */
    receive(received: unknown): void {
      const message = received as Message;
      if (message.call !== undefined) void reply(message);
      else if (message.failed === true) fail(message.id, "the other process failed");
      else conclude(message.id, ({ resolve }) => resolve(message.result as never));
    },
    /** The channel is closed: pending calls and all later ones reject. */
    close(): void {
      closed = true;
      for (const id of pending.keys()) fail(id, channelClosed);
    },
  };
}
