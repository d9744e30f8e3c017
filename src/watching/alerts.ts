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

/** Thresholds are for a busy gateway; whoever needs others keeps a copy of the served file. */
export const alerts: readonly Alert[] = [
  {
    name: "TollgateDown",
    expression: "absent(tollgate_build_info)",
    for: "2m",
    severity: "critical",
    summary: "No Tollgate is scraped",
    description: "Prometheus reaches no instance. Check the process, the network and METRICS_TOKEN.",
  },
  {
    name: "TollgateBackendDown",
    expression: "tollgate_upstream_up == 0",
    for: "1m",
    severity: "critical",
    summary: "The backend does not respond",
    description: "Requests to /v1 fail until it does.",
  },
  {
    name: "TollgateBackendOut",
    expression: 'max by (instance, job, backend) (tollgate_backend_state{state="out"}) == 1',
    for: "1m",
    severity: "warning",
    summary: "A backend of MODELS_FILE is out",
    description: "Its models go to their other backends. The page Backends says since when.",
  },
  {
    name: "TollgateAllBackendsOut",
    expression: 'sum by (instance, job) (tollgate_backend_state{state="in"}) == 0',
    for: "1m",
    severity: "critical",
    summary: "No backend of MODELS_FILE is in",
    description: "All are out or drained. Requests wait as long as PROXY_BACKEND_WAIT says, and then fail.",
  },
  {
    name: "TollgateUpstreamErrors",
    expression:
      "sum by (instance, job) (rate(tollgate_upstream_errors_total[5m])) > 0.05 * sum by (instance, job) (rate(tollgate_requests_total[5m]))",
    for: "5m",
    severity: "warning",
    summary: "More than 5 % of the requests fail because of the backend",
    description: "The labels code and cause of tollgate_upstream_errors_total name the reasons.",
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
    name: "TollgateLedgerLag",
    expression: "tollgate_ledger_lag_seconds > 30",
    for: "1m",
    severity: "critical",
    summary: "Counts wait in memory",
    description: "The database takes no counts. If the process is killed before it does, these counts are lost.",
  },
  {
    name: "TollgateCommitFailures",
    expression: "increase(tollgate_storage_commit_failures_total[5m]) > 0",
    for: "0m",
    severity: "warning",
    summary: "Transactions fail",
    description: "The log names the reason: a full disk, a lock, or a database that cannot be reached.",
  },
  {
    name: "TollgateCountsRefused",
    expression: "tollgate_ledger_refused_requests > 0",
    for: "0m",
    severity: "critical",
    summary: "The database refuses counts",
    description:
      "They are in the log with all their numbers, and not counted. A trigger of yours on these tables refuses them.",
  },
  {
    name: "TollgateLimitsDegraded",
    expression: "tollgate_limits_degraded > 0",
    for: "1m",
    severity: "critical",
    summary: "The limits of keys hold only in part",
    description: "The database does not answer in time. LIMITS_FALLBACK says what holds meanwhile.",
  },
  {
    name: "TollgateEventLoopDelay",
    expression: "tollgate_event_loop_delay_max_seconds > 0.5",
    for: "5m",
    severity: "warning",
    summary: "The event loop is late",
    description: "The process needs more CPU time: see PROCESSES.",
  },
  {
    name: "TollgateDescriptors",
    expression: "process_open_fds > 0.8 * process_max_fds and on (instance, job) tollgate_build_info",
    for: "5m",
    severity: "warning",
    summary: "Few file descriptors are left",
    description: "Each stream takes two. Raise LimitNOFILE.",
  },
  {
    name: "TollgateMetricsStale",
    expression: "sum by (instance, job) (increase(tollgate_collector_errors_total[5m])) > 0",
    for: "5m",
    severity: "warning",
    summary: "Some metrics keep an old value",
    description:
      "The label collector of tollgate_collector_errors_total names them. A lack of file descriptors is one cause.",
  },
  {
    name: "TollgateDisk",
    expression: "tollgate_disk_free_bytes < 1073741824 or tollgate_disk_free_bytes < 0.05 * tollgate_disk_size_bytes",
    for: "5m",
    severity: "critical",
    summary: "The disk of DATA_DIR is nearly full",
    description: "With a full disk, counts wait in memory.",
  },
  {
    name: "TollgateCertificateExpires",
    expression: "tollgate_certificate_not_after_timestamp_seconds - time() < 1209600",
    for: "15m",
    severity: "warning",
    summary: "The certificate of TLS_CERT expires within 14 days",
    description: "Clients refuse it from then on. Renewed files are used without a restart.",
  },
  {
    name: "TollgateGpuStale",
    expression: "time() - tollgate_gpu_last_push_timestamp_seconds > 60",
    for: "1m",
    severity: "warning",
    summary: "No GPU samples arrive",
    description: "No host has pushed samples for a minute. Check `tollgate push-gpu` there.",
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
