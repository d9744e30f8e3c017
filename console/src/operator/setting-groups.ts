import { byteSize, plural } from "../lib/format.ts";

interface NamedSetting {
  name: string;
}

/** In the order of the page. The first whose pattern fits has the setting. */
const groups: readonly (readonly [title: string, names: RegExp])[] = [
  ["Limits and waiting", /^(PROXY_MAX_|PROXY_QUEUE_|LIMITS_|MAX_BODY_|MAX_HELD_|CONTACT$)/],
  ["Models and rewrites", /^(MODELS_|CLIENT_RULES$|PROXY_(ALIAS|FAMILY|VENDOR|HAN)_|MAX_(CONTEXT|OUTPUT)_)/],
  [
    "Listening",
    /^(HOST|PORT|SOCKET_MODE|ADMIN_(HOST|PORT)|TLS_\w+|TRUST_PROXY|PROXY_CORS_\w+|PROXY_CLOSED_PATHS|PUBLIC_URL|PROCESSES|SHUTDOWN_\w+)$/,
  ],
  ["Data", /^(DATA|USAGE|REQUEST_LOG|BACKUP)/],
  ["Log in", /^(ADMIN_|SECRET_KEY|OIDC_|MEMBER_)/],
  ["Log and metrics", /^(LOG|METRICS|NOTICE)_/],
  ["Backend", /^PROXY_/],
  ["Other", /^/],
];

const order = ["Backend", ...groups.map(([title]) => title).filter((title) => title !== "Backend")];

/** The settings by what they are about, in the order of the page. */
export function groupSettings<S extends NamedSetting>(settings: readonly S[]): { title: string; settings: S[] }[] {
  const byTitle = Map.groupBy(settings, ({ name }) => groups.find(([, names]) => names.test(name))?.[0] ?? "Other");
  return order.flatMap((title) => {
    const ofGroup = byTitle.get(title);
    return ofGroup === undefined ? [] : [{ title, settings: ofGroup }];
  });
}

/** What each setting does, by its name: the sentences of the handbook's table. */
export const settingSentences = (chapter: string): ReadonlyMap<string, string> =>
  new Map(
    [...chapter.matchAll(/^\| `(\w+)` +\|[^|]*\| (.+?) *\|$/gm)].map(([, name = "", sentence = ""]) => [
      name,
      sentence.replaceAll(/\[([^\]]+)\]\([^)]+\)/g, "$1").replaceAll("`", ""),
    ]),
  );

const units: readonly (readonly [names: RegExp, unit: string])[] = [
  [/_DAYS$/, "day"],
  [/_ROWS$/, "row"],
  [/_TOKENS$/, "token"],
  [/^PROXY_(MAX_CONCURRENCY|QUEUE_SIZE)$/, "request"],
];

/** What the value of a setting measures, as text after it; empty if it has no unit. */
export function unitOf({ name, value, allowed }: { name: string; value: string; allowed: string }): string {
  const number = Number(value);
  if (!Number.isFinite(number)) return "";
  if (name.endsWith("_BYTES")) return `bytes (${byteSize(number)})`;
  if (allowed.startsWith("seconds")) return wordOf("second", number) + longTime(number);
  const unit = units.find(([names]) => names.test(name))?.[1];
  return unit === undefined ? "" : wordOf(unit, number);
}

const wordOf = (unit: string, number: number): string => (number === 1 ? unit : `${unit}s`);

/** ` (20 minutes)` for what is hard to read as seconds. */
function longTime(seconds: number): string {
  if (seconds >= 3600 && seconds % 3600 === 0) return ` (${plural(seconds / 3600, "hour")})`;
  return seconds > 60 && seconds % 60 === 0 ? ` (${plural(seconds / 60, "minute")})` : "";
}
