import { describe, expect, test } from "bun:test";
import { alerts } from "../../src/watching/alerts.ts";
import { hasPromtool, runPromtool } from "./promtool.ts";

/** A series' value at a time in seconds; undefined: there is none. */
type Values = (seconds: number) => number | undefined;
type AllSeries = Readonly<Record<string, Values>>;

const target = { instance: "gate:8080", job: "tollgate" };
const intervalSeconds = 15;
const minute = 60;
const day = 24 * 60 * minute;
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
const growingInFault =
  (perSecond: number): Values =>
  (seconds) =>
    perSecond * (Math.min(Math.max(seconds, begins), ends) - begins);

/** Of ten requests a second, those that are not slow. */
const fast = (seconds: number): number => 9.9 * seconds;
/** So many of ten requests a second are slow. */
const slowInFault =
  (perSecond: number): Values =>
  (seconds) =>
    fast(seconds) - (perSecond - 0.1) * (Math.min(Math.max(seconds, begins), ends) - begins);

/** A certificate that is always about to end in a fault. */
const endsIn =
  (leftSeconds: number): Values =>
  (seconds) =>
    during(seconds) ? seconds + leftSeconds : seconds + 90 * day;

const firstByte = (le: string): string =>
  `tollgate_time_to_first_byte_seconds_bucket{streamed="true",endpoint="/v1/chat/completions",le="${le}"}`;

const stateOf = (backend: string, state: string): string =>
  `tollgate_backend_state{backend="${backend}",state="${state}"}`;

/** Ten requests a second, of which none fails and each hundredth is slow. */
const healthy: AllSeries = {
  'tollgate_build_info{version="1",commit="c"}': always(1),
  tollgate_upstream_up: always(1),
  'tollgate_requests_total{outcome="completed"}': growing(10),
  ...Object.fromEntries(
    ["gpu-a", "gpu-b"].flatMap((name) => [
      [stateOf(name, "in"), always(1)],
      [stateOf(name, "out"), always(0)],
    ]),
  ),
  'tollgate_upstream_errors_total{code="upstream_unreachable",cause="ECONNREFUSED"}': always(0),
  [firstByte("30")]: fast,
  [firstByte("60")]: growing(10),
  [firstByte("+Inf")]: growing(10),
  tollgate_ledger_lag_seconds: always(0.01),
  tollgate_storage_commit_failures_total: always(0),
  tollgate_ledger_refused_requests: always(0),
  tollgate_limits_degraded: always(0),
  tollgate_event_loop_delay_max_seconds: always(0.03),
  process_open_fds: always(200),
  process_max_fds: always(65_536),
  'tollgate_collector_errors_total{collector="process_max_fds"}': always(3),
  tollgate_disk_free_bytes: always(50 * 1024 ** 3),
  tollgate_disk_size_bytes: always(100 * 1024 ** 3),
  tollgate_certificate_not_after_timestamp_seconds: always(90 * day),
  // A push each second.
  tollgate_gpu_last_push_timestamp_seconds: (seconds) => seconds,
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

const errors = 'tollgate_upstream_errors_total{code="upstream_unreachable",cause="ECONNREFUSED"}';
const collectorErrors = 'tollgate_collector_errors_total{collector="process_max_fds"}';

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
    alert: "TollgateBackendDown",
    ...gauge("tollgate_upstream_up", { normal: 1, limit: 1, over: 0 }),
    quiet: 45,
    fires: 60,
  },
  {
    alert: "TollgateBackendOut",
    series: { [stateOf("gpu-b", "out")]: inFault(1, 0), [stateOf("gpu-b", "in")]: inFault(0, 1) },
    // Drained.
    atLimit: { [stateOf("gpu-b", "in")]: inFault(0, 1) },
    quiet: 45,
    fires: 60,
    labels: { backend: "gpu-b" },
  },
  {
    alert: "TollgateAllBackendsOut",
    // Drained, so that the alert of a single one does not fire.
    series: { [stateOf("gpu-a", "in")]: inFault(0, 1), [stateOf("gpu-b", "in")]: inFault(0, 1) },
    atLimit: { [stateOf("gpu-a", "in")]: inFault(0, 1) },
    quiet: 45,
    fires: 60,
  },
  {
    alert: "TollgateUpstreamErrors",
    // Of ten requests a second. Five minutes of it are over the limit almost at their end, and then for five more.
    series: { [errors]: growingInFault(0.52) },
    atLimit: { [errors]: growingInFault(0.5) },
    quiet: 9 * minute,
    fires: 10.5 * minute,
    lingers: 5 * minute,
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
    alert: "TollgateLedgerLag",
    ...gauge("tollgate_ledger_lag_seconds", { normal: 0, limit: 30, over: 30.1 }),
    quiet: 45,
    fires: 60,
  },
  {
    alert: "TollgateCommitFailures",
    series: { tollgate_storage_commit_failures_total: (seconds) => (seconds > begins ? 1 : 0) },
    atLimit: { tollgate_storage_commit_failures_total: always(1) },
    quiet: 0,
    fires: 15,
    // Once: it clears by itself.
    lingers: 5 * minute - (ends - begins),
  },
  {
    alert: "TollgateCountsRefused",
    ...gauge("tollgate_ledger_refused_requests", { normal: 0, limit: 0, over: 1 }),
    quiet: -15,
    fires: 0,
  },
  {
    alert: "TollgateLimitsDegraded",
    series: { tollgate_limits_degraded: inFault(1, 0) },
    atLimit: { tollgate_limits_degraded: always(0) },
    quiet: 45,
    fires: 60,
  },
  {
    alert: "TollgateEventLoopDelay",
    ...gauge("tollgate_event_loop_delay_max_seconds", { normal: 0.03, limit: 0.5, over: 0.51 }),
    quiet: 285,
    fires: 300,
  },
  {
    alert: "TollgateDescriptors",
    series: { process_max_fds: always(1000), process_open_fds: inFault(801, 200) },
    atLimit: { process_max_fds: always(1000), process_open_fds: inFault(800, 200) },
    quiet: 285,
    fires: 300,
  },
  {
    alert: "TollgateMetricsStale",
    series: { [collectorErrors]: growingInFault(0.1) },
    // Once: it is over within five minutes.
    atLimit: { [collectorErrors]: (seconds) => (seconds > begins ? 1 : 0) },
    quiet: 285,
    fires: 330,
    lingers: 5 * minute,
  },
  {
    alert: "TollgateDisk",
    // 5 % of 100 GiB.
    ...gauge("tollgate_disk_free_bytes", { normal: 50 * 1024 ** 3, limit: 5 * 1024 ** 3, over: 5 * 1024 ** 3 - 1e6 }),
    quiet: 285,
    fires: 300,
  },
  {
    alert: "TollgateDisk",
    // A small one: 1 GiB.
    series: { tollgate_disk_size_bytes: always(8e9), tollgate_disk_free_bytes: inFault(1024 ** 3 - 1, 4e9) },
    atLimit: { tollgate_disk_size_bytes: always(8e9), tollgate_disk_free_bytes: inFault(1024 ** 3, 4e9) },
    quiet: 285,
    fires: 300,
  },
  {
    alert: "TollgateCertificateExpires",
    series: { tollgate_certificate_not_after_timestamp_seconds: endsIn(14 * day - 1) },
    atLimit: { tollgate_certificate_not_after_timestamp_seconds: endsIn(14 * day) },
    quiet: 15 * minute - 15,
    fires: 15 * minute,
  },
  {
    alert: "TollgateGpuStale",
    series: { tollgate_gpu_last_push_timestamp_seconds: (seconds) => (during(seconds) ? begins : seconds) },
    // Always a minute old.
    atLimit: { tollgate_gpu_last_push_timestamp_seconds: (seconds) => seconds - 60 },
    // Stale after a minute, and then for one more.
    quiet: 105,
    fires: 135,
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
  const labels = `instance="${target.instance}",job="${target.job}"`;
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

  test("finds that nothing fires for one without GPU hosts and not on Linux either", () => {
    const absent = ["tollgate_gpu_last_push_timestamp_seconds", "process_open_fds", "process_max_fds"];
    return expectSuccess(
      testFile(Object.fromEntries(absent.map((name) => [name, () => undefined])), expectedAt(30 * minute, [])),
    );
  });

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
