import {
  ceilToStep,
  dayMs,
  floorToStep,
  hourMs,
  minuteMs,
  parseSeoulMinute,
  seoulDay,
  seoulMinute,
} from "./seoul-time.ts";

/** Ranges that end now: hours, or days in Seoul time with today, which are those of every table with days. */
const rollingPresets = {
  "1h": { label: "1 h", spanMs: hourMs },
  "6h": { label: "6 h", spanMs: 6 * hourMs },
  "24h": { label: "24 h", spanMs: dayMs },
  "7d": { label: "7 d", days: 7 },
  "30d": { label: "30 d", days: 30 },
  "90d": { label: "90 d", days: 90 },
  "365d": { label: "365 d", days: 365 },
} as const;

const daysOf = (preset: RangePreset): number | undefined => {
  const rolling = Object.hasOwn(rollingPresets, preset) ? rollingPresets[preset as RollingPreset] : undefined;
  return rolling !== undefined && "days" in rolling ? rolling.days : undefined;
};

type RollingPreset = keyof typeof rollingPresets;

/** Days and months in Seoul time. */
const calendarPresets = {
  today: { label: "Today" },
  yesterday: { label: "Yesterday" },
  month: { label: "This month" },
  "last-month": { label: "Last month" },
} as const;

type CalendarPreset = keyof typeof calendarPresets;

export type RangePreset = RollingPreset | CalendarPreset;

export const presetLabel = (preset: RangePreset): string => ({ ...rollingPresets, ...calendarPresets })[preset].label;

/** Epoch milliseconds; `to` is exclusive. */
export interface TimeSpan {
  from: number;
  to: number;
}

/** What the URL selects: a preset, and possibly a zoom into it. */
export interface TimeRange {
  preset: RangePreset;
  zoom: TimeSpan | undefined;
}

type SearchParameters = Readonly<Record<string, string | string[] | undefined>>;

/** The presets of a page, as options of a control. */
type Options<Preset> = readonly { value: Preset; label: string }[];

const optionsOf = <Preset extends string>(presets: Record<Preset, { label: string }>): Options<Preset> =>
  Object.entries<{ label: string }>(presets).map(([value, { label }]) => ({ value: value as Preset, label }));

export const rollingOptions: Options<RangePreset> = optionsOf(rollingPresets);
export const calendarOptions: Options<RangePreset> = optionsOf(calendarPresets);
/** Up to thirty days, for data that is kept no longer. */
export const presetOptions = rollingOptions.slice(0, 5);

/** Reads a time range from the URL; invalid parameters are ignored. */
export function readTimeRange(
  parameters: SearchParameters,
  defaultPreset: RangePreset,
  options: Options<RangePreset> = [...rollingOptions, ...calendarOptions],
): TimeRange {
  const from = parseSeoulMinute(String(parameters["from"]));
  const to = parseSeoulMinute(String(parameters["to"]));
  return {
    preset: options.find(({ value }) => value === parameters["range"])?.value ?? defaultPreset,
    zoom: from !== undefined && to !== undefined && from < to ? { from, to } : undefined,
  };
}

export const zoomParameters = (zoom: TimeSpan | undefined): { from: string | undefined; to: string | undefined } => ({
  from: zoom && seoulMinute(zoom.from),
  to: zoom && seoulMinute(zoom.to),
});

/** How many days back usage by the minute reaches, and the power of the GPUs. */
export const minuteDays = 30;
/** How many days back usage by the hour reaches. */
export const maxDays = 365;

/** The first moment that a range may cover. */
const earliest = (now: number, days: number): number => (days === maxDays ? startOfDay(now) : now) - days * dayMs;

const startOfDay = (at: number): number => floorToStep(at, dayMs);

const startOfMonth = (at: number): number => parseSeoulMinute(`${seoulDay(at).slice(0, 7)}-01T00:00`) ?? at;

function presetSpan(preset: RangePreset, now: number): TimeSpan {
  const today = startOfDay(now);
  const month = startOfMonth(now);
  if (preset === "today") return { from: today, to: now };
  if (preset === "yesterday") return { from: today - dayMs, to: today };
  if (preset === "month") return { from: month, to: now };
  if (preset === "last-month") return { from: startOfMonth(month - 1), to: month };
  const rolling = rollingPresets[preset];
  return { from: "days" in rolling ? today - (rolling.days - 1) * dayMs : now - rolling.spanMs, to: now };
}

/** The span before it is extended to whole buckets. Of a zoom from a URL, only what is kept. */
export function chosenSpan({ preset, zoom }: TimeRange, now: number, days = minuteDays): TimeSpan {
  const kept = earliest(now, days);
  if (zoom === undefined || zoom.from >= now || zoom.to <= kept) return presetSpan(preset, now);
  return { from: Math.max(zoom.from, kept), to: Math.min(zoom.to, now) };
}

/** Narrower bars blur and are slow to draw. */
const minBarPx = 3;

/** The width of a bar in milliseconds: the fewest whole buckets that are at least `minBarPx` wide. */
export function barStep(span: TimeSpan, bucketMs: number, widthPx: number): number {
  const buckets = (span.to - span.from) / bucketMs;
  return Math.max(1, Math.ceil(buckets / maxBarsIn(widthPx))) * bucketMs;
}

const maxBarsIn = (widthPx: number): number => Math.max(1, Math.floor(widthPx / minBarPx));

/** All of them divide a day, to which the server aligns buckets. */
const bucketWidths = [1, 2, 3, 5, 10, 15, 20, 30, 60, 120, 180, 240, 360, 720, 1440];

/** The width of a bucket in minutes, so that there are as many as the chart has bars. */
export function bucketMinutesFor({ from, to }: TimeSpan, now: number, widthPx: number): number {
  // A span that starts inside a bucket has one bar more than it has complete buckets.
  const maxCompleteBars = Math.max(1, maxBarsIn(widthPx) - 1);
  const least = from < now - minuteDays * dayMs - hourMs ? 60 : 1;
  const wanted = Math.max(least, (to - from) / minuteMs / maxCompleteBars);
  return bucketWidths.find((width) => width >= wanted) ?? 1440;
}

/** The span of a chart: whole buckets, including the current one, which is incomplete. */
export function wholeBuckets({ from, to }: TimeSpan, now: number, bucketMinutes: number): TimeSpan {
  const bucketMs = bucketMinutes * minuteMs;
  return { from: floorToStep(from, bucketMs), to: ceilToStep(to === now ? now + 1 : to, bucketMs) };
}

/**
 * The period before a span of whole buckets: as long and right before it, for days and months the same days of those before.
 * Undefined if it is not kept, or not in such narrow buckets.
 */
export function spanBefore(
  { preset, zoom }: TimeRange,
  span: TimeSpan,
  { now, bucketMinutes }: { now: number; bucketMinutes: number },
): TimeSpan | undefined {
  const length = span.to - span.from;
  const before = (): TimeSpan => {
    if (zoom === undefined && preset === "today") return { from: span.from - dayMs, to: span.to - dayMs };
    const days = zoom === undefined ? daysOf(preset) : undefined;
    // The last of them is not over: so is that of the days before.
    if (days !== undefined) return { from: span.from - days * dayMs, to: span.to - days * dayMs };
    if (zoom !== undefined || (preset !== "month" && preset !== "last-month"))
      return { from: span.from - length, to: span.from };
    const from = startOfMonth(span.from - 1);
    return { from, to: preset === "month" ? Math.min(from + length, span.from) : span.from };
  };
  const found = before();
  const days = bucketMinutes % 60 === 0 ? maxDays : minuteDays;
  return found.from < earliest(now, days) ? undefined : found;
}

export const sameSpan = (a: TimeSpan, b: TimeSpan): boolean => a.from === b.from && a.to === b.to;
