import type { RawHead, ResponseEvents } from "./response-parser.ts";

/**
 * How a message ended. "complete": by its length, its last chunk or, without either, the end of the connection.
 * "truncated": the connection ended (FIN) before that. "reset": RST. "malformed": the bytes are not HTTP.
 */
export type MessageEnding = "complete" | "truncated" | "reset" | "malformed";

/** The part of one response received so far. */
export interface Message {
  head: RawHead | undefined;
  interim: RawHead[];
  body: Buffer[];
  bodyBytes: number;
  /** The position in the body of the next event. */
  eventAt: number;
  received: Buffer[];
  ending: MessageEnding | undefined;
}

export function emptyMessage(): Message {
  return { head: undefined, interim: [], body: [], bodyBytes: 0, eventAt: 0, received: [], ending: undefined };
}

export function recordInto(message: Message, keepBody: boolean): ResponseEvents {
  return {
    head(head) {
      if (head.status < 200) message.interim.push(head);
      else message.head = head;
    },
    body(bytes) {
      message.bodyBytes += bytes.length;
      if (keepBody) message.body.push(bytes);
    },
    end() {
      message.ending = "complete";
    },
  };
}

export function findHead({ head, ending }: Message): RawHead | undefined {
  if (head === undefined && ending !== undefined) throw new Error(`No head: ${ending}`);
  return head;
}

export function findBodyContaining(message: Message, wanted: string): string | undefined {
  const soFar = Buffer.concat(message.body).toString();
  if (soFar.includes(wanted)) return soFar;
  if (message.ending !== undefined)
    throw new Error(`The message ended (${message.ending}): ${describeMessage(message)}`);
  return undefined;
}

export function findEventOrEnd(message: Message): { text: string | undefined } | undefined {
  return takeEvent(message) ?? (message.ending === undefined ? undefined : { text: undefined });
}

function takeEvent(message: Message): { text: string } | undefined {
  const bytes = Buffer.concat(message.body);
  message.body = [bytes];
  const ends = ["\n\n", "\r\n\r\n"].flatMap((mark) => {
    const at = bytes.indexOf(mark, message.eventAt);
    return at === -1 ? [] : [at + mark.length];
  });
  if (ends.length === 0) return undefined;
  const end = Math.min(...ends);
  const text = bytes.toString("utf8", message.eventAt, end);
  message.eventAt = end;
  return { text };
}

export function describeMessage(message: Message): string {
  return JSON.stringify(Buffer.concat(message.received).toString().slice(0, 500));
}
