import type { Socket } from "bun";

/** Writes bytes to one client exactly as given. */
export interface Wire {
  /** @returns false if the client reads too slowly: the bytes are kept, and `drained` resolves when they are gone */
  write(bytes: string | Uint8Array): boolean;
  drained(): Promise<void>;
  /** Ends the connection after what was written (FIN). */
  end(): void;
  /** Ends the connection at once (RST), losing what the kernel still holds. */
  reset(): void;
  readonly isClosed: boolean;
}

export interface SocketWire extends Wire {
  /** Calls back once, after everything written has left. */
  whenDrained(then: () => void): void;
  /** Whether written bytes still wait for the client to read. */
  readonly isFull: boolean;
  /** The socket's own handlers call these. */
  onDrain(): void;
  onClose(): void;
  /** How this side ended the connection, if it did. */
  readonly endedHow: "end" | "reset" | undefined;
}

interface WireState {
  readonly socket: Socket<unknown>;
  /** What the kernel has not taken yet. While there is any, later bytes queue after it. */
  unsent: Uint8Array[];
  drainCallbacks: (() => void)[];
  isClosed: boolean;
  endedHow: "end" | "reset" | undefined;
}

export function createWire(socket: Socket<unknown>): SocketWire {
  const state: WireState = { socket, unsent: [], drainCallbacks: [], isClosed: false, endedHow: undefined };
  return {
    write: (bytes) => write(state, bytes),
    drained: () => new Promise((resolve) => whenDrained(state, resolve)),
    whenDrained: (then) => whenDrained(state, then),
    end: () => end(state),
    reset: () => reset(state),
    onDrain: () => sendUnsent(state),
    onClose: () => close(state),
    get isFull() {
      return state.unsent.length > 0;
    },
    get endedHow() {
      return state.endedHow;
    },
    get isClosed() {
      return state.isClosed;
    },
  };
}

function write(state: WireState, bytes: string | Uint8Array): boolean {
  const { socket, unsent, isClosed } = state;
  if (isClosed) return true;
  if (unsent.length > 0) {
    unsent.push(Buffer.from(bytes as string));
    return false;
  }
  const taken = socket.write(bytes);
  const length = typeof bytes === "string" ? Buffer.byteLength(bytes) : bytes.length;
  if (taken === length) return true;
  unsent.push(Buffer.from(bytes as string).subarray(Math.max(0, taken)));
  return false;
}

function sendUnsent(state: WireState): void {
  const { socket, unsent } = state;
  while (unsent[0] !== undefined) {
    const taken = socket.write(unsent[0]);
    if (taken < unsent[0].length) {
      unsent[0] = unsent[0].subarray(Math.max(0, taken));
      return;
    }
    unsent.shift();
  }
  if (state.endedHow === "end") socket.end();
  callDrained(state);
}

function whenDrained(state: WireState, then: () => void): void {
  if (state.unsent.length === 0 || state.isClosed) then();
  else state.drainCallbacks.push(then);
}

function callDrained(state: WireState): void {
  const callbacks = state.drainCallbacks;
  state.drainCallbacks = [];
  for (const then of callbacks) then();
}

function end(state: WireState): void {
  state.endedHow ??= "end";
  if (state.unsent.length === 0) state.socket.end();
}

function reset(state: WireState): void {
  state.endedHow ??= "reset";
  state.socket.terminate();
}

function close(state: WireState): void {
  state.isClosed = true;
  state.unsent = [];
  // Waiting writers wake up and see `isClosed`.
  callDrained(state);
}
