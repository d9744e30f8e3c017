import { monitorEventLoopDelay } from "node:perf_hooks";
import { Counter, type Registry } from "prom-client";
import { addGauge } from "./series.ts";

/**
 * The names that Prometheus clients share, as far as Bun can tell them: prom-client's own set holds zeros and NaN there
 * (15.1.3 on Bun 1.4.5).
 * @returns what stops the measuring
 */
export function addProcessMetrics(registry: Registry): () => void {
  addGauge(
    registry,
    {
      name: "process_start_time_seconds",
      help: "When the process started, seconds since the epoch",
      aggregator: "min",
    },
    () => performance.timeOrigin / 1000,
  );
  addGauge(registry, { name: "process_resident_memory_bytes", help: "Memory that the process holds" }, () =>
    process.memoryUsage.rss(),
  );
  const cpu: Counter = new Counter({
    name: "process_cpu_seconds_total",
    help: "CPU time that the process has used",
    registers: [registry],
    collect() {
      const { user, system } = process.cpuUsage();
      cpu.reset();
      cpu.inc((user + system) / 1e6);
    },
  });
  return addEventLoopDelay(registry);
}

function addEventLoopDelay(registry: Registry): () => void {
  const delays = monitorEventLoopDelay({ resolution: 20 });
  delays.enable();
  addGauge(
    registry,
    {
      name: "tollgate_event_loop_delay_max_seconds",
      help: "The longest that the event loop was late since the last scrape",
      aggregator: "max",
    },
    () => {
      const { max } = delays;
      delays.reset();
      return max / 1e9;
    },
  );
  return () => delays.disable();
}
