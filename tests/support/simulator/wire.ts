import type { Socket } from "bun";

/** Writes bytes to one client exactly as given. */
export class Wire {
  isClosed = false;
  /** How this side ended the connection, if it did. */
  endedHow: "end" | "reset" | undefined;
  /** What the kernel has not taken yet. While there is any, later bytes queue after it. */
  #unsent: Uint8Array[] = [];
  #drainCallbacks: (() => void)[] = [];

  constructor(readonly socket: Socket<unknown>) {}

  /** Whether written bytes still wait for the client to read. */
  get isFull(): boolean {
    return this.#unsent.length > 0;
  }

  /** @returns false if the client reads too slowly: the bytes are kept, and `drained` resolves when they are gone */
  write(bytes: string | Uint8Array): boolean {
    if (this.isClosed) return true;
    this.#unsent.push(Buffer.from(bytes as string));
    if (this.#unsent.length === 1) this.#send();
    return !this.isFull;
  }

  /** Calls back once, after everything written has left. */
  whenDrained(then: () => void): void {
    if (!this.isFull || this.isClosed) then();
    else this.#drainCallbacks.push(then);
  }

  drained(): Promise<void> {
    return new Promise((resolve) => this.whenDrained(resolve));
  }

  /** Ends the connection after what was written (FIN). */
  end(): void {
    this.endedHow ??= "end";
    if (!this.isFull) this.socket.end();
  }

  /** Ends the connection at once (RST), losing what the kernel still holds. */
  reset(): void {
    this.endedHow ??= "reset";
    this.socket.terminate();
  }

  /** The socket's own handlers call this and the next. */
  onDrain(): void {
    this.#send();
    if (this.isFull) return;
    if (this.endedHow === "end") this.socket.end();
    this.#callDrained();
  }

  onClose(): void {
    this.isClosed = true;
    this.#unsent = [];
    // Waiting writers wake up and see `isClosed`.
    this.#callDrained();
  }

  #send(): void {
    for (let bytes = this.#unsent[0]; bytes !== undefined; bytes = this.#unsent[0]) {
      const taken = this.socket.write(bytes);
      if (taken < bytes.length) {
        this.#unsent[0] = bytes.subarray(Math.max(0, taken));
        return;
      }
      this.#unsent.shift();
    }
  }

  #callDrained(): void {
    const callbacks = this.#drainCallbacks;
    this.#drainCallbacks = [];
    for (const then of callbacks) then();
  }
}
