import { indexOfBytes, latin1 } from "../json/bytes.ts";

/** Recognises the event that a client takes for the end of a stream. */
export interface TerminalEvents {
  /** Whether `bytes` may hold one: false for nearly all. */
  mayBeIn(bytes: Uint8Array): boolean;
  /** @param event one whole event, or the first bytes of a long one */
  isTerminal(event: Uint8Array): boolean;
}

const done = Buffer.from("[DONE]");
const messageStop = Buffer.from("message_stop");
const responseEnds = ["response.completed", "response.incomplete", "response.failed"].map((name) => Buffer.from(name));

const doneLine = /^data: ?\[DONE\][ \t]*\r?$/m;
const endName = "(?:message_stop|response\\.(?:completed|incomplete|failed))";
const eventLine = new RegExp(`^event: ?${endName}[ \\t]*\\r?$`, "m");
const typeMember = new RegExp(`^data: ?\\{\\s*"type"\\s*:\\s*"${endName}"`, "m");
const wholeType = new RegExp(`^${endName}$`);

/** Names stand near the start of an event; only in its JSON can the type come later. */
const headBytes = 512;

/**
 * `data: [DONE]` ends a stream of the OpenAI dialects, `message_stop` one of the Messages API, `response.completed`,
 * `.incomplete` and `.failed` one of the Responses API.
 * @param path the request's; determines which dialects are possible, and so what has to be looked for
 */
export function terminalEventsOf(path: string): TerminalEvents {
  const markers = [
    done,
    ...(path.includes("/messages") ? [messageStop] : []),
    ...(path.includes("/responses") ? responseEnds : []),
  ];
  return {
    mayBeIn: (bytes) => markers.some((marker) => indexOfBytes(bytes, marker, 0) >= 0),
    isTerminal,
  };
}

function isTerminal(event: Uint8Array): boolean {
  const text = latin1(event, 0, Math.min(event.length, headBytes));
  if (doneLine.test(text) || eventLine.test(text) || typeMember.test(text)) return true;
  return !/^event:/m.test(text) && wholeType.test(typeOf(event));
}

/** The `type` of an event's JSON, wherever it stands; empty if it has none. */
function typeOf(event: Uint8Array): string {
  const data = /^data:(.*)$/m.exec(Buffer.from(event.buffer, event.byteOffset, event.byteLength).toString())?.[1];
  try {
    const value: unknown = JSON.parse(data ?? "");
    return typeof value === "object" && value !== null && "type" in value ? String(value.type) : "";
  } catch {
    return "";
  }
}
