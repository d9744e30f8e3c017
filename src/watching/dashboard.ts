interface Panel {
  title: string;
  unit: "short" | "s" | "bytes" | "percentunit" | "reqps" | "ops" | "bool";
  /** PromQL and the name of its series, which may contain labels as `{{label}}`. */
  queries: readonly (readonly [expression: string, legend: string])[];
}

const match = '{instance=~"$instance"}';
const range = "[$__rate_interval]";

/** The share of all durations of a histogram that are below the quantile. */
const quantile = (share: number, histogram: string): string =>
  `histogram_quantile(${share}, sum by (le) (rate(${histogram}_bucket${match}${range})))`;

const rows: readonly (readonly [title: string, panels: readonly Panel[]])[] = [
  [
    "Requests",
    [
      {
        title: "Requests by outcome",
        unit: "reqps",
        queries: [[`sum by (outcome) (rate(tollgate_requests_total${match}${range}))`, "{{outcome}}"]],
      },
      {
        title: "Requests in flight",
        unit: "short",
        queries: [[`sum(tollgate_requests_in_flight${match})`, "in flight"]],
      },
      {
        title: "Queue",
        unit: "short",
        queries: [
          [`sum(tollgate_queue_waiting_requests${match})`, "waiting"],
          [`sum(tollgate_queue_used_places${match})`, "places in use"],
          [`sum(tollgate_queue_places${match})`, "places"],
        ],
      },
      {
        title: "Counted requests",
        unit: "reqps",
        queries: [[`sum(rate(tollgate_counted_requests_total${match}${range}))`, "counted"]],
      },
      {
        title: "Counted tokens",
        unit: "ops",
        queries: [[`sum by (direction) (rate(tollgate_counted_tokens_total${match}${range}))`, "{{direction}}"]],
      },
      {
        title: "Requests by model",
        unit: "reqps",
        queries: [[`sum by (model) (rate(tollgate_model_requests_total${match}${range}))`, "{{model}}"]],
      },
      {
        title: "Tokens by model",
        unit: "ops",
        queries: [[`sum by (model) (rate(tollgate_model_tokens_total${match}${range}))`, "{{model}}"]],
      },
      {
        title: "Responses without tokens",
        unit: "reqps",
        queries: [[`sum(rate(tollgate_responses_without_tokens_total${match}${range}))`, "without tokens"]],
      },
      {
        title: "Time to first byte",
        unit: "s",
        queries: [
          [quantile(0.5, "tollgate_time_to_first_byte_seconds"), "median"],
          [quantile(0.95, "tollgate_time_to_first_byte_seconds"), "95 %"],
        ],
      },
      {
        title: "Duration",
        unit: "s",
        queries: [
          [quantile(0.5, "tollgate_request_duration_seconds"), "median"],
          [quantile(0.95, "tollgate_request_duration_seconds"), "95 %"],
        ],
      },
    ],
  ],
  [
    "Backend",
    [
      { title: "Backend responds", unit: "bool", queries: [[`tollgate_upstream_up${match}`, "{{instance}}"]] },
      {
        title: "Errors by cause",
        unit: "reqps",
        queries: [
          [`sum by (code, cause) (rate(tollgate_upstream_errors_total${match}${range}))`, "{{code}} {{cause}}"],
        ],
      },
      {
        title: "Backends that are in",
        unit: "bool",
        queries: [[`max by (backend) (tollgate_backend_state{instance=~"$instance", state="in"})`, "{{backend}}"]],
      },
      {
        title: "Requests by backend",
        unit: "reqps",
        queries: [[`sum by (backend) (rate(tollgate_backend_requests_total${match}${range}))`, "{{backend}}"]],
      },
      {
        title: "In flight by backend",
        unit: "short",
        queries: [
          [`sum by (backend) (tollgate_backend_in_flight_requests${match})`, "{{backend}}"],
          [`sum by (backend) (tollgate_backend_waiting_requests${match})`, "{{backend}} waiting"],
        ],
      },
      {
        title: "Time to first byte by backend, 95 %",
        unit: "s",
        queries: [
          [
            `histogram_quantile(0.95, sum by (le, backend) (rate(tollgate_backend_time_to_first_byte_seconds_bucket${match}${range})))`,
            "{{backend}}",
          ],
        ],
      },
      {
        title: "GPU samples",
        unit: "ops",
        queries: [[`sum by (result) (rate(tollgate_gpu_samples_total${match}${range}))`, "{{result}}"]],
      },
    ],
  ],
  [
    "Counts",
    [
      {
        title: "Age of the oldest uncommitted count",
        unit: "s",
        queries: [[`tollgate_ledger_lag_seconds${match}`, "{{instance}}"]],
      },
      {
        title: "Uncommitted and refused requests",
        unit: "short",
        queries: [
          [`sum(tollgate_ledger_waiting_requests${match})`, "uncommitted"],
          [`sum(tollgate_ledger_refused_requests${match})`, "refused"],
        ],
      },
      {
        title: "Commits",
        unit: "s",
        queries: [
          [quantile(0.5, "tollgate_storage_commit_duration_seconds"), "median"],
          [quantile(0.99, "tollgate_storage_commit_duration_seconds"), "99 %"],
        ],
      },
    ],
  ],
  [
    "Host",
    [
      {
        title: "Database",
        unit: "bytes",
        queries: [
          [`tollgate_database_bytes${match}`, "{{instance}} database"],
          [`tollgate_database_log_bytes${match}`, "{{instance}} log"],
        ],
      },
      {
        title: "Free space in DATA_DIR",
        unit: "bytes",
        queries: [[`tollgate_disk_free_bytes${match}`, "{{instance}}"]],
      },
      {
        title: "File descriptors",
        unit: "percentunit",
        queries: [[`process_open_fds${match} / process_max_fds${match}`, "{{instance}}"]],
      },
      {
        title: "Metrics that cannot be read",
        unit: "ops",
        queries: [[`sum by (collector) (rate(tollgate_collector_errors_total${match}${range}))`, "{{collector}}"]],
      },
      {
        title: "CPU",
        unit: "percentunit",
        queries: [[`rate(process_cpu_seconds_total${match}${range})`, "{{instance}}"]],
      },
      { title: "Memory", unit: "bytes", queries: [[`process_resident_memory_bytes${match}`, "{{instance}}"]] },
      {
        title: "Longest delay of the event loop",
        unit: "s",
        queries: [[`tollgate_event_loop_delay_max_seconds${match}`, "{{instance}}"]],
      },
    ],
  ],
];

const datasource = { type: "prometheus", uid: "${datasource}" };
const [columns, width, height] = [3, 8, 8];

/** A dashboard for Grafana 9 or later. It asks for the data source, and has no id, so that an import never replaces another. */
export function grafanaDashboard(): Record<string, unknown> {
  let y = 0;
  let id = 1;
  const panels: unknown[] = [];
  for (const [title, inRow] of rows) {
    panels.push({ id: id++, type: "row", title, collapsed: false, gridPos: { x: 0, y: y++, w: 24, h: 1 }, panels: [] });
    for (const [index, panel] of inRow.entries()) {
      const gridPos = {
        x: (index % columns) * width,
        y: y + Math.floor(index / columns) * height,
        w: width,
        h: height,
      };
      panels.push(graph(id++, panel, gridPos));
    }
    y += Math.ceil(inRow.length / columns) * height;
  }
  return {
    uid: "tollgate",
    title: "Tollgate",
    tags: ["tollgate"],
    schemaVersion: 37,
    editable: true,
    refresh: "30s",
    time: { from: "now-6h", to: "now" },
    templating: { list: variables },
    panels,
  };
}

const variables = [
  { name: "datasource", label: "Data source", type: "datasource", query: "prometheus" },
  {
    name: "instance",
    label: "Instance",
    type: "query",
    datasource,
    query: { query: "label_values(tollgate_build_info, instance)", refId: "instances" },
    refresh: 2,
    multi: true,
    includeAll: true,
    current: { text: "All", value: "$__all" },
  },
];

function graph(id: number, { title, unit, queries }: Panel, gridPos: object): object {
  return {
    id,
    type: "timeseries",
    title,
    datasource,
    gridPos,
    fieldConfig: { defaults: { unit, min: 0, custom: { fillOpacity: 10, showPoints: "never" } }, overrides: [] },
    options: { legend: { displayMode: "list", placement: "bottom" }, tooltip: { mode: "multi" } },
    targets: queries.map(([expr, legendFormat], index) => ({
      refId: String.fromCodePoint(65 + index),
      datasource,
      expr,
      legendFormat,
    })),
  };
}
