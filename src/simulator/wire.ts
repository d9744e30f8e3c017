import type { Socket } from "bun";

/** The way out to one client: bytes as they are, nothing added. */
export interface Wire {
  /** @returns false where the client reads too slowly: what was given is kept, and `drained` tells when it is gone */
  write(bytes: string | Uint8Array): boolean;
  drained(): Promise<void>;
  /** Ends the connection after what was written (FIN). */
  end(): void;
  /** Ends the connection at once (RST); what the kernel still holds is lost. */
  reset(): void;
  readonly isClosed: boolean;
}

export interface SocketWire extends Wire {
  /** Calls back once, when everything written has left. */
  whenDrained(then: () => void): void;
  /** Whether something waits for the client to read. */
  readonly isFull: boolean;
  /** For the socket's own handlers. */
  onDrain(): void;
  onClose(): void;
  /** How this side ended it, if it did. */
  readonly endedHow: "end" | "reset" | undefined;
}

export function createWire(socket: Socket<unknown>): SocketWire {
  /** What the kernel would not take yet. While there is any, nothing may be written past it. */
  let unsent: Uint8Array[] = [];
  let waiting: (() => void)[] = [];
  let isClosed = false;
  let endedHow: "end" | "reset" | undefined;

  const flush = (): void => {
    while (unsent[0] !== undefined) {
      const taken = socket.write(unsent[0]);
      if (taken < unsent[0].length) {
        unsent[0] = unsent[0].subarray(Math.max(0, taken));
        return;
      }
      unsent.shift();
    }
    if (endedHow === "end") socket.end();
    release();
  };
  const release = (): void => {
    const callbacks = waiting;
    waiting = [];
    for (const then of callbacks) then();
  };
  const whenDrained = (then: () => void): void => {
    if (unsent.length === 0 || isClosed) then();
    else waiting.push(then);
  };

  return {
    write(bytes) {
      if (isClosed) return true;
      if (unsent.length === 0) {
        const taken = socket.write(bytes);
        const length = typeof bytes === "string" ? Buffer.byteLength(bytes) : bytes.length;
        if (taken === length) return true;
        unsent.push(Buffer.from(bytes as string).subarray(Math.max(0, taken)));
      } else {
        unsent.push(Buffer.from(bytes as string));
      }
      return false;
    },
    drained: () => new Promise((resolve) => whenDrained(resolve)),
    whenDrained,
    end() {
      endedHow ??= "end";
      if (unsent.length === 0) socket.end();
    },
    reset() {
      endedHow ??= "reset";
      socket.terminate();
    },
    onDrain: flush,
    onClose() {
      isClosed = true;
      unsent = [];
      // Whoever waits for room must wake up and see that there is nobody to write to.
      release();
    },
    get isFull() {
      return unsent.length > 0;
    },
    get endedHow() {
      return endedHow;
    },
    get isClosed() {
      return isClosed;
    },
  };
}
