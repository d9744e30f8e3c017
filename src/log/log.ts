import type { WallClock } from "../time/clock.ts";

export const logLevels = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof logLevels)[number];
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

/** Writes one line per entry. Fields may hold client input, so control characters are escaped. */
export function createLog({ level, format, clock, write, always = {} }: LogOptions): Log {
  const line = format === "json" ? jsonLine : prettyLine;
  const entry = (of: LogLevel): Log["info"] => {
    if (logLevels.indexOf(of) < logLevels.indexOf(level)) return () => {};
    return (message, fields) => write(line(new Date(clock()).toISOString(), of, message, { ...always, ...fields }));
  };
  return { debug: entry("debug"), info: entry("info"), warn: entry("warn"), error: entry("error") };
}

function jsonLine(time: string, level: LogLevel, message: string, fields: LogFields): string {
  return `${withoutControls(JSON.stringify({ time, level, message, ...fields }))}\n`;
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

/** `JSON.stringify` does not escape DEL and the C1 controls, and terminals obey some of them. */
function withoutControls(text: string): string {
  return text.replace(
    // oxlint-disable-next-line no-control-regex -- control characters are what it escapes
    /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g,
    (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
