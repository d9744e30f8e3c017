import type { Log, LogFields } from "../log/log.ts";

export type LogOnChange = (level: "info" | "warn", message: string, fields: LogFields) => void;

/** Logs a state only if it differs from the previous one, so that an outage is one line, not one each second. */
export function createLogOnChange(log: Log): LogOnChange {
  let previous = "";
  return (level, message, fields) => {
    const state = JSON.stringify([message, fields]);
    if (state === previous) return;
    previous = state;
    log[level](message, fields);
  };
}
