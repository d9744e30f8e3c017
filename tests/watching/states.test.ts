import { describe, expect, test } from "bun:test";
import type { Facts, Kind } from "../../src/watching/state-rules.ts";
import { judge, kindNames, mergeStates, type SeenState, type State } from "../../src/watching/states.ts";

const now = Date.UTC(2026, 10, 29, 12);
const [second, minute] = [1000, 60_000];
const [hour, day] = [60 * minute, 24 * 60 * minute];
type Known = Omit<Facts, "now">;

interface Case {
  kind: Kind;
  /** As near as it can be without its coming. */
  quiet: Known;
  comes: Known;
  /** The text of what came. */
  what: string;
  /** It would not come, and does not go. */
  stays?: Known;
  goes: Known;
}

const counts = { waiting: 0, sinceMs: 0, refused: 0 };
const traffic = (requests: number, failed: number): Known => ({ traffic: [{ backend: "b", requests, failed }] });
const firstBytes = (requests: number, medianMs: number): Known => ({
  firstBytes: [{ backend: "b", requests, medianMs, usualMs: 100 }],
});
const disk = (freeBytes: number, sizeBytes: number): Known => ({ disk: { freeBytes, sizeBytes } });
const open = (of: number): Known => ({ descriptors: { open: of, limit: 1000 } });
const replaced = (...ago: number[]): Known => ({ replaced: ago.map((ms) => now - ms) });
const gpu = (ago: number): Known => ({ gpuHosts: [{ host: "rack", at: now - ago }] });
const outputs = (generated: number, counted: number): Known => ({ outputs: { generated, counted } });
const drains = (ago: number): Known => ({ draining: [{ backend: "b", since: now - ago }] });
const out = (isOut: boolean): Known => ({ backends: [{ name: "b", isOut, cause: "ECONNREFUSED" }] });

const cases: readonly Case[] = [
  {
    kind: "database_away",
    quiet: { database: { name: "PostgreSQL", isWritable: true }, counts },
    comes: {
      database: { name: "PostgreSQL", isWritable: false },
      counts: { waiting: 312, sinceMs: 18_000, refused: 0 },
      limits: { fallback: "local", alone: [1, 2, 3, 4].map((id) => ({ id, requests: 1 })) },
    },
    what: "PostgreSQL away, 312 counts waited, none lost, limits by share for 4 keys",
    goes: { database: { name: "PostgreSQL", isWritable: true } },
  },
  {
    kind: "counts_refused",
    quiet: { counts },
    comes: { counts: { ...counts, refused: 2 } },
    what: "Counts of 2 requests refused",
    goes: { counts },
  },
  {
    kind: "counts_waiting",
    quiet: { counts: { ...counts, waiting: 5, sinceMs: 29_999 } },
    comes: { counts: { ...counts, waiting: 5, sinceMs: 30_000 } },
    what: "5 counts waited in memory",
    stays: { counts: { ...counts, waiting: 1, sinceMs: 10 } },
    goes: { counts },
  },
  {
    kind: "limits_by_share",
    quiet: { limits: { fallback: "local", alone: undefined } },
    comes: {
      limits: {
        fallback: "local",
        alone: [
          { id: 7, requests: 12 },
          { id: -2, requests: 3 },
        ],
      },
    },
    what: "Limits are not exact (LIMITS_FALLBACK local), key 7: 12 requests a minute, team 2: 3 requests a minute",
    goes: { limits: { fallback: "local", alone: undefined } },
  },
  {
    kind: "schema_newer",
    quiet: { schema: { isNewer: false, mayWrite: true } },
    comes: { schema: { isNewer: true, mayWrite: false } },
    what: "A newer build migrated the database, and this one would lose counts",
    goes: { schema: { isNewer: false, mayWrite: true } },
  },
  {
    kind: "backend_out",
    quiet: out(false),
    comes: out(true),
    what: "b does not respond (ECONNREFUSED)",
    goes: out(false),
  },
  {
    kind: "disk",
    quiet: disk(20e9, 1000e9),
    comes: disk(4e9, 100e9),
    what: "4.0 GB free in DATA_DIR",
    goes: disk(5e9, 100e9),
  },
  {
    kind: "descriptors",
    quiet: open(800),
    comes: open(801),
    what: "801 of 1000 file descriptors open",
    stays: open(701),
    goes: open(700),
  },
  {
    kind: "models_file_refused",
    quiet: { modelsFile: [] },
    comes: { modelsFile: ["line 3: no such backend", "another"] },
    what: "MODELS_FILE is refused: line 3: no such backend",
    goes: { modelsFile: [] },
  },
  {
    kind: "backend_failing",
    quiet: traffic(81, 4),
    comes: traffic(100, 5),
    what: "5 of 100 requests to b failed in 5 minutes",
    stays: traffic(100, 1),
    goes: traffic(101, 1),
  },
  {
    kind: "backend_failing",
    quiet: traffic(101, 5),
    comes: traffic(5, 5),
    what: "5 of 5 requests to b failed in 5 minutes",
    goes: traffic(0, 0),
  },
  {
    kind: "queue_refuses",
    quiet: { queue: { refused: 0 } },
    comes: { queue: { refused: 1 } },
    what: "The queue refused 1 request in 5 minutes",
    goes: { queue: { refused: 0 } },
  },
  {
    kind: "user_source_refuses",
    quiet: { refusedUsers: new Map() },
    comes: { refusedUsers: new Map([[5, 2]]) },
    what: "The users' tokens of 2 requests with key 5 were refused in 5 minutes",
    goes: { refusedUsers: new Map() },
  },
  {
    kind: "users_nearly_full",
    quiet: { users: [{ key: "chat", users: 899, max: 1000 }] },
    comes: { users: [{ key: "chat", users: 900, max: 1000 }] },
    what: "chat has 900 of at most 1000 users",
    goes: { users: [{ key: "chat", users: 900, max: 2000 }] },
  },
  {
    kind: "child_replaced",
    quiet: replaced(11 * minute, 2 * minute, minute),
    comes: replaced(9 * minute, 2 * minute, minute),
    what: "3 worker processes replaced in 10 minutes",
    stays: replaced(12 * minute, 11 * minute, 9 * minute),
    goes: replaced(12 * minute, 11 * minute, 10 * minute),
  },
  {
    kind: "certificate",
    quiet: { certificate: now + 14 * day + 1 },
    comes: { certificate: now + 14 * day },
    what: "The certificate expires in 14 days",
    goes: { certificate: now + 90 * day },
  },
  {
    kind: "backup_failed",
    quiet: { backup: { lastAt: now } },
    comes: { backup: { lastAt: now, failed: "EACCES" } },
    what: "A backup failed: EACCES",
    goes: { backup: { lastAt: now } },
  },
  {
    kind: "backup_old",
    quiet: { backup: { lastAt: now - 36 * hour + 1 } },
    comes: { backup: { lastAt: now - 36 * hour } },
    what: "The last backup is 1 days old",
    goes: { backup: { lastAt: now } },
  },
  {
    kind: "backup_skipped",
    quiet: { backup: { lastAt: now } },
    comes: { backup: { lastAt: now, skipped: "2 GB free, 3 GB needed" } },
    what: "A backup was skipped: 2 GB free, 3 GB needed",
    goes: { backup: { lastAt: now } },
  },
  {
    kind: "backend_slow",
    quiet: firstBytes(19, 900),
    comes: firstBytes(20, 400),
    what: "The first byte of b takes 400 ms, usually 100 ms",
    stays: firstBytes(3, 200),
    goes: firstBytes(30, 199),
  },
  {
    kind: "backend_slow",
    quiet: firstBytes(50, 399),
    comes: firstBytes(20, 401),
    what: "The first byte of b takes 401 ms, usually 100 ms",
    goes: { firstBytes: [] },
  },
  {
    kind: "clock_stepped",
    quiet: { step: { at: now - hour, byMs: 40 * day } },
    comes: { step: { at: now - second, byMs: -60_000 } },
    what: "The clock stepped by -60 s",
    goes: { step: { at: now - hour, byMs: -60_000 } },
  },
  {
    kind: "gpu_silent",
    quiet: gpu(minute),
    comes: gpu(minute + 1),
    what: "rack sends no GPU samples",
    goes: gpu(second),
  },
  {
    kind: "drift",
    quiet: outputs(2_000_000, 1_980_000),
    comes: outputs(2_000_000, 1_970_000),
    what: "Counts and the backend's differ by 1.5% of today's output",
    goes: outputs(2_000_000, 2_000_000),
  },
  {
    kind: "drift",
    quiet: outputs(20_000, 10_000),
    comes: outputs(20_000, 9999),
    what: "Counts and the backend's differ by 50.0% of today's output",
    goes: outputs(20_000, 20_000),
  },
  { kind: "taken_out", quiet: drains(day - 1), comes: drains(day), what: "b was taken out", goes: { draining: [] } },
];

const judged = (before: readonly State[], facts: Known): State[] => judge(before, { now, ...facts }).standing;

test("each kind has a case", () => {
  expect(kindNames.filter((kind) => !cases.some((one) => one.kind === kind))).toEqual([]);
});

describe.each(cases)("$kind", ({ kind, quiet, comes, what, stays, goes }) => {
  test("comes and goes by its facts alone, and stays as it is where they are not known", () => {
    const ofKind = (states: readonly State[]): string[] =>
      states.filter((one) => one.kind === kind).map((one) => one.what);
    expect(ofKind(judged([], quiet))).toEqual([]);
    const standing = judged([], comes);
    expect(ofKind(standing)).toEqual([what]);
    expect(ofKind(judged(standing, {}))).toEqual([what]);
    if (stays !== undefined) {
      expect(ofKind(judged([], stays))).toEqual([]);
      expect(ofKind(judged(standing, stays))).toHaveLength(1);
    }
    const after = judge(standing, { now: now + second, ...goes });
    expect(ofKind(after.standing)).toEqual([]);
    expect(ofKind(after.gone)).toEqual([what]);
  });
});

test("a state keeps its beginning and what was the most of it", () => {
  const waiting = (requests: number): Known => ({ counts: { waiting: requests, sinceMs: 60_000, refused: 0 } });
  const first = judge([], { now, ...waiting(3) }).standing;
  const most = judge(first, { now: now + 1, ...waiting(9) }).standing;
  const last = judge(most, { now: now + 2, ...waiting(2) }).standing;
  expect(last).toEqual([
    { kind: "counts_waiting", object: "", since: now, what: "9 counts waited in memory", count: 9 },
  ]);
});

test("a kind has 8 objects at most", () => {
  const backends = Array.from({ length: 20 }, (_, index) => ({ name: `b${index}`, isOut: true }));
  expect(judged([], { backends })).toHaveLength(8);
});

describe("states of several processes", () => {
  const seen = (kind: string, process: string, since: number, until: number | null = null, more = {}): SeenState => ({
    kind,
    process,
    object: "",
    since,
    until,
    what: `${kind} by ${process}`,
    count: null,
    silencedUntil: null,
    silencedWhy: null,
    silencedBy: null,
    told: 0,
    ...more,
  });
  const shown = (states: readonly { kind: string; instance: string | null; since: number; until: number | null }[]) =>
    states.map(({ kind, instance, since, until }) => [kind, instance, since, until]);

  test("of one machine or one database they are one, of a process its own; the worst come first", () => {
    const { states, past } = mergeStates(
      [
        seen("gpu_silent", "a/1", 5),
        seen("gpu_silent", "b/1", 3),
        seen("disk", "a/1", 9),
        seen("disk", "a/2", 8),
        seen("disk", "b/1", 7),
        seen("descriptors", "a/1", 1),
        seen("descriptors", "a/2", 2),
        seen("kind_of_a_newer_build", "a/2", 2),
      ],
      0,
    );
    expect(past).toEqual([]);
    expect(shown(states)).toEqual([
      ["disk", "b", 7, null],
      ["disk", "a", 8, null],
      ["descriptors", "a/1", 1, null],
      ["descriptors", "a/2", 2, null],
      ["gpu_silent", null, 3, null],
    ]);
  });

  test("it stands while one sees it, and what came again later is another one", () => {
    const { states, past } = mergeStates(
      [
        seen("disk", "a/1", 0, 10_000),
        seen("disk", "a/2", 1000, 12_000),
        seen("disk", "a/1", 100_000, 110_000),
        seen("disk", "a/2", 101_000),
      ],
      0,
    );
    expect(shown(states)).toEqual([["disk", "a", 100_000, null]]);
    expect(shown(past)).toEqual([["disk", "a", 0, 12_000]]);
  });

  test("it is silenced once all that see it are", () => {
    const silenced = { silencedUntil: 99, silencedWhy: "w", silencedBy: "me" };
    const until = (rows: SeenState[]) => mergeStates(rows, 0).states.map(({ silencedUntil }) => silencedUntil);
    expect(until([seen("disk", "a/1", 0, null, silenced), seen("disk", "a/2", 0, null, silenced)])).toEqual([99]);
    expect(until([seen("disk", "a/1", 0, null, silenced), seen("disk", "a/2", 0)])).toEqual([null]);
    expect(until([seen("disk", "a/1", 0, 5), seen("disk", "a/2", 0, null, silenced)])).toEqual([99]);
  });
});
