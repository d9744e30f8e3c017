// The alert rules for Prometheus (here) and the dashboard for Grafana, as data that `/alerts.yaml` and `/grafana.json`
// serve. They know the series by their names only, and import nothing of ours.

export interface Alert {
  name: string;
  /** PromQL; fires while it returns a sample. */
  expression: string;
  /** How long it has to be so. */
  for: string;
  severity: "critical" | "warning";
  summary: string;
  description: string;
}

/** What nobody but Prometheus sees; what an instance knows is wrong is one alert. Its states have their own thresholds. */
export const alerts: readonly Alert[] = [
  {
    name: "TollgateDown",
    expression:
      "absent(tollgate_build_info) or (up == 0 and on (instance, job) last_over_time(tollgate_build_info[1d])) or changes(process_start_time_seconds[15m]) > 2 and on (instance, job) last_over_time(tollgate_build_info[1d])",
    for: "2m",
    severity: "critical",
    summary: "An instance of Tollgate is not reached, or starts again and again",
    description: "Check the process and its log, the network and METRICS_TOKEN.",
  },
  {
    name: "TollgateProblem",
    expression: 'max by (instance, job, kind) (tollgate_problem{silenced="no"}) == 1',
    for: "1m",
    severity: "warning",
    summary: "An instance says what is wrong in the label kind",
    description: "The console's overview says since when and what to do, and so does `tollgate check`.",
  },
  {
    name: "TollgateFirstByteSlow",
    expression:
      'histogram_quantile(0.95, sum by (instance, job, le) (rate(tollgate_time_to_first_byte_seconds_bucket{streamed="true"}[5m]))) > 30',
    for: "10m",
    severity: "warning",
    summary: "5 % of the streams wait longer than 30 s for their first byte",
    description: "The backend is overloaded, or its queue is long.",
  },
  {
    name: "TollgateEventLoopDelay",
    expression: "tollgate_event_loop_delay_max_seconds > 0.5",
    for: "5m",
    severity: "warning",
    summary: "The event loop is late",
    description: "The process needs more CPU time: see PROCESSES.",
  },
];

/** The file for `rule_files` of Prometheus. JSON strings are YAML strings. */
export function alertsYaml(): string {
  const entries = alerts.map(
    (rule) => `      - alert: ${rule.name}
        expr: ${JSON.stringify(rule.expression)}
        for: ${rule.for}
        labels:
          severity: ${rule.severity}
        annotations:
          summary: ${JSON.stringify(rule.summary)}
          description: ${JSON.stringify(rule.description)}
`,
  );
  return `groups:\n  - name: tollgate\n    rules:\n${entries.join("")}`;
}
