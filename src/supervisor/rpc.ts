type Methods = object;
type Method<M extends Methods, N extends keyof M> = M[N] extends (...args: infer A) => infer R
  ? { args: A; answer: Awaited<R> }
  : never;

/** One end of a channel on which both sides may ask. */
export interface Rpc<Theirs extends Methods> {
  /** Rejects where the other side fails, does not answer within the deadline, or is gone. */
  call<N extends keyof Theirs & string>(
    name: N,
    ...args: Method<Theirs, N>["args"]
  ): Promise<Method<Theirs, N>["answer"]>;
  /** Takes what came over the channel. */
  receive(message: unknown): void;
  /** The channel is gone: whatever waits for an answer fails. */
  close(): void;
}

const theOtherIsGone = "the other process is gone";

interface Message {
  id: number;
  /** Left out in an answer. */
  call?: string;
  args?: unknown[];
  answer?: unknown;
  failed?: boolean;
}

interface PendingCall {
  resolve: (answer: never) => void;
  reject: (error: Error) => void;
  deadline: Timer;
}

/** @param send throws where the channel is closed */
export function createRpc<Theirs extends Methods>(
  own: Methods,
  send: (message: object) => void,
  deadlineMs: number,
): Rpc<Theirs> {
  const waiting = new Map<number, PendingCall>();
  let nextId = 1;
  let closed = false;

  function settle(id: number, how: (caller: PendingCall) => void): void {
    const caller = waiting.get(id);
    waiting.delete(id);
    if (caller === undefined) return;
    clearTimeout(caller.deadline);
    how(caller);
  }

  const fail = (id: number, reason: string): void => settle(id, ({ reject }) => reject(new Error(reason)));

  async function answer({ id, call = "", args = [] }: Message): Promise<void> {
    const method = (own as Record<string, ((...args: unknown[]) => unknown) | undefined>)[call];
    const reply = await Promise.try(() => method?.(...args)).then(
      (value) => ({ id, answer: value }),
      () => ({ id, failed: true }),
    );
    try {
      send(reply);
    } catch {
      // Whoever asked is gone.
    }
  }

  return {
    call: (name, ...args) =>
      new Promise((resolve, reject) => {
        // Bun (1.4.5) takes messages for a closed channel without complaint.
        if (closed) throw new Error(theOtherIsGone);
        const id = nextId++;
        send({ id, call: name, args } satisfies Message);
        const deadline = setTimeout(() => fail(id, `no answer to ${name} in time`), deadlineMs);
        waiting.set(id, { resolve, reject, deadline });
      }),
    receive(message) {
      const read = message as Message;
      if (read.call !== undefined) void answer(read);
      else if (read.failed === true) fail(read.id, "the other process failed");
      else settle(read.id, ({ resolve }) => resolve(read.answer as never));
    },
    close() {
      closed = true;
      for (const id of waiting.keys()) fail(id, theOtherIsGone);
    },
  };
}
