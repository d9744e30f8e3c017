import type { Log } from "../log/log.ts";

export type LogOnChange = (level: "info" | "warn", words: string) => void;

/** Logs a state when it differs from the one before, so that an outage is one line and not one a second. */
export function createLogOnChange(log: Log): LogOnChange {
  let last = "";
  return (level, words) => {
    if (words === last) return;
    last = words;
    log[level](words);
  };
}
