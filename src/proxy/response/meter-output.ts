import { createEventBoundary, type Place } from "../sse/event-boundary.ts";

/** The sending side of a meter. It knows what may follow the bytes sent so far. */
export interface MeterOutput {
  attach: (controller: TransformStreamDefaultController<Uint8Array>) => void;
  send(bytes: Uint8Array): void;
  /** Sends a comment line if it changes nothing in the stream's meaning and the client takes what it is sent. */
  sendComment: () => void;
  /** Sends an event of its own, after ending a line or an event that was left open. */
  sendEvent(event: Uint8Array): void;
  hasSent(): boolean;
  /** Breaks the stream on both sides, and drops what the client has not taken. */
  fail(reason: unknown): void;
}

const utf8 = new TextEncoder();
const comment: Readonly<Record<Place, Uint8Array | undefined>> = {
  "between events": utf8.encode(": keepalive\n\n"),
  "between lines": utf8.encode(": keepalive\n"),
  "inside a line": undefined,
};
const ending: Readonly<Record<Place, Uint8Array>> = {
  "between events": utf8.encode(""),
  "between lines": utf8.encode("\n"),
  "inside a line": utf8.encode("\n\n"),
};

/** @param onFirstBytes called when the first bytes are sent */
export function createMeterOutput(onFirstBytes: () => void): MeterOutput {
  const boundary = createEventBoundary();
  let controller: TransformStreamDefaultController<Uint8Array> | undefined;
  let sent = false;

  function send(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    boundary.passed(bytes);
    controller?.enqueue(bytes);
    if (sent) return;
    sent = true;
    onFirstBytes();
  }

  return {
    attach(given) {
      controller = given;
    },
    send,
    sendComment() {
      const bytes = comment[boundary.place()];
      const clientReads = (controller?.desiredSize ?? 0) > 0;
      if (bytes !== undefined && clientReads) send(bytes);
    },
    sendEvent(event) {
      send(Buffer.concat([ending[boundary.place()], event]));
    },
    hasSent: () => sent,
    fail: (reason) => controller?.error(reason),
  };
}
