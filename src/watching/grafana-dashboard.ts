/** PromQL and the name of its series, which may contain labels as `{{label}}`. */
type Query = readonly [expression: string, legend: string];
type Unit = "short" | "s" | "bytes" | "percentunit" | "reqps" | "ops" | "bool";
type Panel = readonly [title: string, unit: Unit, ...queries: Query[]];

const match = '{instance=~"$instance"}';
const range = "[$__rate_interval]";

/** The share of all durations of a histogram that are below the quantile. */
const quantile = (share: number, histogram: string, by = "le"): string =>
  `histogram_quantile(${share}, ${sum(rate(`${histogram}_bucket`), by)})`;

const rate = (metric: string): string => `rate(${metric}${match}${range})`;
const sum = (expression: string, by?: string): string => `sum${by === undefined ? "" : ` by (${by}) `}(${expression})`;
/** Summed by some labels, which name the series. */
const rateBy = (counter: string, by: string): Query => [
  sum(rate(counter), by),
  by.replace(/\w+/g, "{{$&}}").replace(",", ""),
];
const rateOf = (metric: string, legend: string): Query => [sum(rate(metric)), legend];
const sumOf = (gauge: string, legend: string): Query => [sum(gauge + match), legend];
const ofInstance = (gauge: string): Query => [gauge + match, "{{instance}}"];
const quantiles = (histogram: string, ...shares: [share: number, legend: string][]): Query[] =>
  shares.map(([share, legend]) => [quantile(share, histogram), legend]);
const medianAnd95 = (histogram: string): Query[] => quantiles(histogram, [0.5, "median"], [0.95, "95 %"]);

const rows: readonly (readonly [title: string, panels: readonly Panel[]])[] = [
  [
    "Requests",
    [
      ["Requests by outcome", "reqps", rateBy("tollgate_requests_total", "outcome")],
      ["Requests in flight", "short", sumOf("tollgate_requests_in_flight", "in flight")],
      [
        "Queue",
        "short",
        sumOf("tollgate_queue_waiting_requests", "waiting"),
        sumOf("tollgate_queue_used_places", "places in use"),
        sumOf("tollgate_queue_places", "places"),
      ],
      ["Counted requests", "reqps", rateOf("tollgate_counted_requests_total", "counted")],
      ["Counted tokens", "ops", rateBy("tollgate_counted_tokens_total", "direction")],
      ["Requests by model", "reqps", rateBy("tollgate_model_requests_total", "model")],
      ["Tokens by model", "ops", rateBy("tollgate_model_tokens_total", "model")],
      ["Responses without tokens", "reqps", rateOf("tollgate_responses_without_tokens_total", "without tokens")],
      ["Time to first byte", "s", ...medianAnd95("tollgate_time_to_first_byte_seconds")],
      ["Duration", "s", ...medianAnd95("tollgate_request_duration_seconds")],
    ],
  ],
  [
    "Backend",
    [
      ["Backend responds", "bool", ofInstance("tollgate_upstream_up")],
      ["Errors by cause", "reqps", rateBy("tollgate_upstream_errors_total", "code, cause")],
      [
        "Backends that are in",
        "bool",
        ['max by (backend) (tollgate_backend_state{instance=~"$instance", state="in"})', "{{backend}}"],
      ],
      ["Requests by backend", "reqps", rateBy("tollgate_backend_requests_total", "backend")],
      [
        "In flight by backend",
        "short",
        [sum(`tollgate_backend_in_flight_requests${match}`, "backend"), "{{backend}}"],
        [sum(`tollgate_backend_waiting_requests${match}`, "backend"), "{{backend}} waiting"],
      ],
      [
        "Time to first byte by backend, 95 %",
        "s",
        [quantile(0.95, "tollgate_backend_time_to_first_byte_seconds", "le, backend"), "{{backend}}"],
      ],
      ["GPU samples", "ops", rateBy("tollgate_gpu_samples_total", "result")],
    ],
  ],
  [
    "Counts",
    [
      ["Age of the oldest uncommitted count", "s", ofInstance("tollgate_ledger_lag_seconds")],
      [
        "Uncommitted and refused requests",
        "short",
        sumOf("tollgate_ledger_waiting_requests", "uncommitted"),
        sumOf("tollgate_ledger_refused_requests", "refused"),
      ],
      ["Commits", "s", ...quantiles("tollgate_storage_commit_duration_seconds", [0.5, "median"], [0.99, "99 %"])],
    ],
  ],
  [
    "Host",
    [
      [
        "Database",
        "bytes",
        [`tollgate_database_bytes${match}`, "{{instance}} database"],
        [`tollgate_database_log_bytes${match}`, "{{instance}} log"],
      ],
      ["Free space in DATA_DIR", "bytes", ofInstance("tollgate_disk_free_bytes")],
      ["File descriptors", "percentunit", ofInstance(`process_open_fds${match} / process_max_fds`)],
      ["Metrics that cannot be read", "ops", rateBy("tollgate_collector_errors_total", "collector")],
      ["CPU", "percentunit", [rate("process_cpu_seconds_total"), "{{instance}}"]],
      ["Memory", "bytes", ofInstance("process_resident_memory_bytes")],
      ["Longest delay of the event loop", "s", ofInstance("tollgate_event_loop_delay_max_seconds")],
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
      const [x, line] = [(index % columns) * width, Math.floor(index / columns)];
      panels.push(graph(id++, panel, { x, y: y + line * height, w: width, h: height }));
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

function graph(id: number, [title, unit, ...queries]: Panel, gridPos: object): object {
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
