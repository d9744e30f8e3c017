import { dayMs, hourMs, minuteMs } from "./seoul-time.ts";

const groupedFormat = new Intl.NumberFormat("en-US");
const compactFormat = new Intl.NumberFormat("en-US", { notation: "compact", maximumSignificantDigits: 3 });
const oneDecimalFormat = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });

/** `1,234,567` */
export const count = (value: number): string => groupedFormat.format(value);

/** `1.23M`; below 10,000 all digits, which still fit. */
export const compact = (value: number): string =>
  Math.abs(value) < 10_000 ? oneDecimalFormat.format(value) : compactFormat.format(value);

export const plural = (value: number, singular: string, pluralForm = `${singular}s`): string =>
  `${count(value)} ${value === 1 ? singular : pluralForm}`;

/** `412 W`, `5.32 kW` */
export const watts = (value: number): string =>
  value < 1000 ? `${Math.round(value)} W` : `${threeDigits(value / 1000)} kW`;

/** `12.3 Wh`, `4.56 kWh` */
export function wattHours(value: number): string {
  if (value < 1000) return `${threeDigits(value)} Wh`;
  return value < 1_000_000 ? `${threeDigits(value / 1000)} kWh` : `${threeDigits(value / 1_000_000)} MWh`;
}

export const threeDigits = (value: number): string =>
  new Intl.NumberFormat("en-US", { maximumSignificantDigits: 3 }).format(value);

/** Gibibytes of a value in mebibytes, the unit GPU tools report. */
export const gibibytes = (mebibytes: number): string => oneDecimalFormat.format(mebibytes / 1024);

/** `12%`, `0.4%`; `0%` of nothing. */
export const shareOf = (part: number, whole: number): string =>
  whole === 0 ? "0%" : `${oneDecimalFormat.format((100 * part) / whole)}%`;

/** `70.2 GiB`, `4.54 TiB`; of a value in mebibytes. */
export const memory = (mebibytes: number): string =>
  mebibytes < 1024 * 1024 ? `${gibibytes(mebibytes)} GiB` : `${threeDigits(mebibytes / 1024 / 1024)} TiB`;

/** `+12%`; undefined if the earlier value is 0. */
export function percentChange(now: number, before: number): string | undefined {
  if (before === 0) return undefined;
  const percent = Math.round(((now - before) / before) * 100);
  if (percent === 0) return "±0%";
  return percent > 0 ? `+${count(percent)}%` : `−${count(-percent)}%`;
}

/** `just now`, `12 s ago`, `5 min ago`, `3 h ago`, `12 d ago` */
export function timeAgo(ms: number): string {
  if (ms < 5000) return "just now";
  return `${duration(ms)} ago`;
}

/** Only the largest unit: `12 s`, `5 min`, `3 h`, `12 d`. */
export function duration(ms: number): string {
  if (ms < minuteMs) return `${Math.floor(ms / 1000)} s`;
  if (ms < hourMs) return `${Math.floor(ms / minuteMs)} min`;
  if (ms < 2 * dayMs) return `${Math.floor(ms / hourMs)} h`;
  return `${Math.floor(ms / dayMs)} d`;
}

/** `1-minute`, `2-hour`, `1-day` */
export function bucketName(minutes: number): string {
  if (minutes % 1440 === 0) return `${minutes / 1440}-day`;
  return minutes % 60 === 0 ? `${minutes / 60}-hour` : `${minutes}-minute`;
}

/** `7 ms`, `1.23 s`, `2 min 5 s` */
export function milliseconds(ms: number): string {
  if (ms < 1) return ms === 0 ? "0 ms" : "< 1 ms";
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_995) return `${threeDigits(ms / 1000)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** `812 B`, `1.2 KiB`, `3.4 MiB` */
export function byteSize(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  const power = Math.min(units.length, Math.floor(Math.log2(bytes) / 10));
  return `${threeDigits(bytes / 1024 ** power)} ${units[power - 1]}`;
}
