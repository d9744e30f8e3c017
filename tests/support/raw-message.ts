import type { RawHead, ResponseEvents } from "./response-parser.ts";

/**
 * How a message ended. "complete": by its length, its last chunk or, where neither says, the connection's end.
 * "truncated": the connection ended (FIN) before that. "reset": RST. "malformed": what came is not HTTP.
 */
export type MessageEnding = "complete" | "truncated" | "reset" | "malformed";

/** What came of one response so far. */
export interface Message {
  head: RawHead | undefined;
  interim: RawHead[];
  body: Buffer[];
  bodyBytes: number;
  /** Where in the body the next event begins. */
  eventAt: number;
  received: Buffer[];
  ending: MessageEnding | undefined;
}

export function emptyMessage(): Message {
  return { head: undefined, interim: [], body: [], bodyBytes: 0, eventAt: 0, received: [], ending: undefined };
}

export function fill(message: Message, keepBody: boolean): ResponseEvents {
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

export function headOf({ head, ending }: Message): RawHead | undefined {
  if (head === undefined && ending !== undefined) throw new Error(`No head: ${ending}`);
  return head;
}

export function bodyHolding(message: Message, wanted: string): string | undefined {
  const soFar = Buffer.concat(message.body).toString();
  if (soFar.includes(wanted)) return soFar;
  if (message.ending !== undefined) throw new Error(`The message ended (${message.ending}): ${shown(message)}`);
  return undefined;
}

export function eventOrEnd(message: Message): { text: string | undefined } | undefined {
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

export function shown(message: Message): string {
  return JSON.stringify(Buffer.concat(message.received).toString().slice(0, 500));
}
