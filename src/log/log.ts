// The log: one line for each entry, of at most 2 KB. Every room may use it.
//
// It keeps true: fields may hold what a client has sent, so control characters and overrides of direction are escaped,
// and long texts are cut. Lines of one tick are written together (`log-writer.ts`); while their reader has stopped,
// some are dropped and counted, and do not fill the memory. It does not know where lines go: `write` is an argument.

import type { WallClock } from "../time/clock.ts";
import { batchPerTick } from "../time/per-tick.ts";

const logLevels = ["debug", "info", "warn", "error"] as const;
type LogLevel = (typeof logLevels)[number];
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;
export type Log = Readonly<Record<LogLevel, (message: string, fields?: LogFields) => void>>;

export interface LogOptions {
  level: LogLevel;
  format: "pretty" | "json";
  clock: WallClock;
  write: (line: string) => void;
  /** Fields of every entry. */
  always?: LogFields;
}

export function createLog({ level, format, clock, write, always = {} }: LogOptions): Log {
  const toLine = format === "json" ? jsonLine : prettyLine;
  const hasCommon = Object.keys(always).length > 0;
  const entry = (of: LogLevel): Log["info"] => {
    if (logLevels.indexOf(of) < logLevels.indexOf(level)) return () => {};
    return (message, fields = {}) => {
      const time = new Date(clock()).toISOString();
      const all = hasCommon ? { ...always, ...fields } : fields;
      const line = toLine(time, of, message, all);
      write(fits(line) ? line : boundedLine(message, all, (...parts) => toLine(time, of, ...parts)));
    };
  };
  return { debug: entry("debug"), info: entry("info"), warn: entry("warn"), error: entry("error") };
}

/** Including the line feed: collectors split or drop longer lines, and a client could fill the disk. */
const maxLineBytes = 2048;
/** Longest texts to try in turn, in UTF-16 units: an escaped one takes up to six bytes for each. */
const textLimits = [1500, 1000, 500, 250, 100, 50];

function boundedLine(
  message: string,
  fields: LogFields,
  toLine: (message: string, fields: LogFields) => string,
): string {
  for (const limit of textLimits) {
    const cutFields = Object.entries(fields).map(([name, value]) => [name, cutText(value, limit)] as const);
    const line = toLine(cutText(message, limit), Object.fromEntries(cutFields));
    if (fits(line)) return line;
  }
  return toLine(cutText(message, 50), {});
}

/** No UTF-16 unit takes more than three bytes, so most lines need not be measured. */
const fits = (line: string): boolean => line.length * 3 <= maxLineBytes || Buffer.byteLength(line) <= maxLineBytes;

function cutText<T>(value: T, limit: number): T | string {
  if (typeof value !== "string" || value.length <= limit) return value;
  // The cut may split a surrogate pair: half of one is not valid text.
  return `${value.slice(0, limit).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

/** The fields are not copied into one object with the rest, which takes a third of the time. None has one of these names. */
function jsonLine(time: string, level: LogLevel, message: string, fields: LogFields): string {
  const rest = JSON.stringify(fields).slice(1);
  const separator = rest === "}" ? "" : ",";
  const json = `{"time":"${time}","level":"${level}","message":${JSON.stringify(message)}${separator}${rest}`;
  return `${withoutControls(json)}\n`;
}

function prettyLine(time: string, level: LogLevel, message: string, fields: LogFields): string {
  const rest = Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(
      ([name, value]) =>
        ` ${name}=${typeof value === "string" && !/^[\w./:-]+$/.test(value) ? JSON.stringify(value) : value}`,
    );
  return `${time.slice(11, 23)} ${level.toUpperCase().padEnd(5)} ${withoutControls(message + rest.join(""))}\n`;
}

/**
 * `JSON.stringify` does not escape DEL and the C1 controls, and terminals obey some of them; overrides of direction change how
 * the rest of a line reads.
 */
export function withoutControls(text: string): string {
  return text.replace(
    // oxlint-disable-next-line no-control-regex -- control characters are what it escapes
    /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g,
    (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** How many UTF-16 units may wait for a reader that has stopped reading: its pipe takes 64 KiB, and memory the rest. */
export const maxWaiting = 8 * 1024 * 1024;

/**
 * Writes all log lines of one tick in one call, because a system call costs more than a line. Pending lines are written
 * when the process exits; SIGKILL loses at most the lines of one tick.
 * @param write calls `written` once the text is written, or cannot be
 * @param onDropped called when there is room again, with the number of lines for which there was none
 */
export function createLogWriter(
  write: (text: string, written: () => void) => void,
  onDropped: (lines: number) => void,
): (line: string) => void {
  let waiting = 0;
  let dropped = 0;
  const lines = batchPerTick<string>((batch) => {
    if (waiting > maxWaiting) {
      dropped += batch.length;
      return;
    }
    const text = batch.join("");
    waiting += text.length;
    write(text, () => {
      waiting -= text.length;
      if (dropped === 0 || waiting > maxWaiting) return;
      const count = dropped;
      dropped = 0;
      onDropped(count);
    });
  });
  process.on("exit", lines.flush);
  return lines.add;
}
