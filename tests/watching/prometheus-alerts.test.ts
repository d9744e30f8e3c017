import { describe, expect, test } from "bun:test";
import { alerts, alertsYaml } from "../../src/watching/prometheus-alerts.ts";
import { listSeries, seriesIn } from "./series.ts";
import { hasPromtool, runPromtool } from "./promtool.ts";

test("every alert reads series that exist", async () => {
  const known = await listSeries();
  for (const { name, expression } of alerts) {
    const read = seriesIn(expression);
    expect({ name, read: read.length > 0, missing: read.filter((series) => !known.has(series)) }).toEqual({
      name,
      read: true,
      missing: [],
    });
  }
});

test("the served file holds each alert once, as it is", () => {
  const { groups } = Bun.YAML.parse(alertsYaml()) as { groups: { rules: Record<string, unknown>[] }[] };
  expect(groups[0]?.rules.map(({ alert, expr, for: time }) => [alert, expr, time])).toEqual(
    alerts.map(({ name, expression, for: time }) => [name, expression, time]),
  );
  expect(new Set(alerts.map(({ name }) => name)).size).toBe(alerts.length);
});

/** A series' value at a time in seconds; undefined: there is none. */
type Values = (seconds: number) => number | undefined;
type AllSeries = Readonly<Record<string, Values>>;

const target = { instance: "gate:8080", job: "tollgate" };
const intervalSeconds = 15;
const minute = 60;
/** A fault lasts from one to the other. */
const [begins, ends, finish] = [10 * minute, 40 * minute, 70 * minute];

const during = (seconds: number): boolean => seconds >= begins && seconds < ends;
const always =
  (value: number): Values =>
  () =>
    value;
const inFault =
  (value: number, normal: number): Values =>
  (seconds) =>
    during(seconds) ? value : normal;
/** A counter. */
const growing =
  (perSecond: number): Values =>
  (seconds) =>
    perSecond * seconds;
/** Of ten requests a second, those that are not slow. */
const fast = (seconds: number): number => 9.9 * seconds;
/** So many of ten requests a second are slow. */
const slowInFault =
  (perSecond: number): Values =>
  (seconds) =>
    fast(seconds) - (perSecond - 0.1) * (Math.min(Math.max(seconds, begins), ends) - begins);

const firstByte = (le: string): string =>
  `tollgate_time_to_first_byte_seconds_bucket{streamed="true",endpoint="/v1/chat/completions",le="${le}"}`;

/** Ten requests a second, of which none fails and each hundredth is slow. */
const healthy: AllSeries = {
  up: always(1),
  process_start_time_seconds: always(1),
  'tollgate_build_info{version="1",commit="c"}': always(1),
  [firstByte("30")]: fast,
  [firstByte("60")]: growing(10),
  [firstByte("+Inf")]: growing(10),
  tollgate_event_loop_delay_max_seconds: always(0.03),
};

interface Fault {
  alert: string;
  /** By how far over its limit the value is. */
  series: AllSeries;
  /** A value at the limit, or as near below it as it can be: for as long as the fault, it does not fire. */
  atLimit: AllSeries;
  /** The last time at which it does not fire yet, and the first at which it does, in seconds after the beginning. */
  quiet: number;
  fires: number;
  /** How long after the end of the fault it still fires at most. */
  lingers?: number;
  /** Whether the alert names the target. */
  isOfTarget?: boolean;
  /** What it names besides. */
  labels?: Record<string, string>;
}

const allGone: AllSeries = Object.fromEntries(
  Object.entries(healthy).map(([name, values]) => [name, (seconds) => (during(seconds) ? undefined : values(seconds))]),
);

const [problem, silenced] = ["no", "yes"].map((said) => `tollgate_problem{kind="disk",silenced="${said}"}`) as [
  string,
  string,
];

/** A gauge that fires above a limit, or below it. */
const gauge = (name: string, { normal, limit, over }: { normal: number; limit: number; over: number }) => ({
  series: { [name]: inFault(over, normal) },
  atLimit: { [name]: inFault(limit, normal) },
});

const faults: readonly Fault[] = [
  {
    alert: "TollgateDown",
    series: allGone,
    // One instance is enough.
    atLimit: { tollgate_upstream_up: always(1) },
    quiet: 105,
    fires: 120,
    isOfTarget: false,
  },
  {
    alert: "TollgateDown",
    // Another one is reached.
    series: {
      ...allGone,
      up: inFault(0, 1),
      'tollgate_build_info{version="1",commit="c",instance="other:8080"}': always(1),
    },
    atLimit: { up: always(1) },
    quiet: 105,
    fires: 120,
  },
  {
    alert: "TollgateDown",
    // It starts again every minute.
    series: { process_start_time_seconds: (seconds) => (during(seconds) ? Math.floor(seconds / minute) : 1) },
    // Twice.
    atLimit: { process_start_time_seconds: (seconds) => (seconds < begins ? 1 : seconds < begins + minute ? 2 : 3) },
    quiet: 3 * minute,
    fires: 6 * minute,
    lingers: 14 * minute,
  },
  {
    alert: "TollgateProblem",
    series: { [problem]: inFault(1, 0) },
    atLimit: { [silenced]: inFault(1, 0) },
    quiet: 45,
    fires: 60,
    labels: { kind: "disk" },
  },
  {
    alert: "TollgateFirstByteSlow",
    series: { [firstByte("30")]: slowInFault(0.55) },
    atLimit: { [firstByte("30")]: slowInFault(0.5) },
    quiet: 13 * minute,
    fires: 15.5 * minute,
    lingers: 5 * minute,
  },
  {
    alert: "TollgateEventLoopDelay",
    ...gauge("tollgate_event_loop_delay_max_seconds", { normal: 0.03, limit: 0.5, over: 0.51 }),
    quiet: 285,
    fires: 300,
  },
];

function inputSeries(series: AllSeries): { series: string; values: string }[] {
  const times = Array.from({ length: finish / intervalSeconds + 1 }, (_, index) => index * intervalSeconds);
  return Object.entries(series).map(([name, values]) => ({
    series: withTarget(name),
    values: times.map((seconds) => values(seconds) ?? "stale").join(" "),
  }));
}

function withTarget(name: string): string {
  const labels = `${name.includes("instance=") ? "" : `instance="${target.instance}",`}job="${target.job}"`;
  return name.endsWith("}") ? `${name.slice(0, -1)},${labels}}` : `${name}{${labels}}`;
}

function expectedAlert({ alert, isOfTarget = true, labels }: Fault): unknown {
  const { severity, summary, description } = alerts.find(({ name }) => name === alert) ?? {};
  return {
    exp_labels: { severity, ...labels, ...(isOfTarget ? target : {}) },
    exp_annotations: { summary, description },
  };
}

/** At this time these alerts fire, and no other. */
const expectedAt = (seconds: number, firing: readonly unknown[], alert?: string) =>
  alerts.map(({ name }) => ({
    eval_time: `${seconds}s`,
    alertname: name,
    exp_alerts: name === alert ? firing : [],
  }));

const testFile = (series: AllSeries, expected: unknown[]): string =>
  // JSON is YAML.
  JSON.stringify({
    rule_files: ["alerts.yaml"],
    evaluation_interval: `${intervalSeconds}s`,
    tests: [
      {
        interval: `${intervalSeconds}s`,
        input_series: inputSeries({ ...healthy, ...series }),
        alert_rule_test: expected,
      },
    ],
  });

async function expectSuccess(text: string): Promise<void> {
  const { status, output } = await runPromtool(["test", "rules", "test.yaml"], { "test.yaml": text });
  expect({ status, output }).toMatchObject({ status: 0, output: expect.stringContaining("SUCCESS") });
}

describe.skipIf(!hasPromtool)("promtool", () => {
  test("accepts the served rules", async () => {
    const { status, output } = await runPromtool(["check", "rules", "alerts.yaml"]);
    expect({ status, output }).toMatchObject({
      status: 0,
      output: expect.stringContaining(`SUCCESS: ${alerts.length} rules found`),
    });
  });

  test("finds that nothing fires for a healthy gateway", () =>
    expectSuccess(
      testFile(
        {},
        [5, 30, 65].flatMap((minutes) => expectedAt(minutes * minute, [])),
      ),
    ));

  test("has a fault for each alert", () => {
    expect([...new Set(faults.map(({ alert }) => alert))]).toEqual(alerts.map(({ name }) => name));
  });

  test.each(faults)("finds that nothing fires at the limit of $alert", async ({ atLimit }) => {
    const times = Array.from({ length: (ends - begins) / minute }, (_, at) => begins + at * minute);
    await expectSuccess(
      testFile(
        atLimit,
        times.flatMap((seconds) => expectedAt(seconds, [])),
      ),
    );
  });

  test.each(faults)(
    "finds that $alert fires for its fault and no other does, not too early, and not after it",
    async (fault) => {
      const { alert, series, quiet, fires, lingers = 0 } = fault;
      const firing = [expectedAlert(fault)];
      await expectSuccess(
        testFile(series, [
          ...expectedAt(begins + quiet, []),
          ...expectedAt(begins + fires, firing, alert),
          ...(lingers < 0 ? [] : expectedAt(ends - intervalSeconds, firing, alert)),
          ...expectedAt(ends + lingers + intervalSeconds, []),
        ]),
      );
    },
  );
});
