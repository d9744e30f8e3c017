import { monitorEventLoopDelay } from "node:perf_hooks";
import { Counter, type Registry } from "prom-client";
import { countOpenDescriptors, findDescriptorLimit, readDescriptorLimit } from "./descriptors.ts";
import { addGauge } from "./series.ts";

/**
 * The standard process metrics of Prometheus clients that Bun can measure. prom-client 15.1.3's own set contains zeros
 * and NaN on Bun 1.4.5.
 * Remove when `collectDefaultMetrics` gives real values.
 * @returns stops the measurement
 */
export function addProcessMetrics(registry: Registry): () => void {
  addGauge(
    registry,
    {
      name: "process_start_time_seconds",
      help: "Start time of the process since the Unix epoch, in seconds",
      aggregator: "min",
    },
    () => performance.timeOrigin / 1000,
  );
  addGauge(registry, { name: "process_resident_memory_bytes", help: "Resident memory size, in bytes" }, () =>
    process.memoryUsage.rss(),
  );
  const cpu: Counter = new Counter({
    name: "process_cpu_seconds_total",
    help: "Total user and system CPU time, in seconds",
    registers: [registry],
    collect() {
      const { user, system } = process.cpuUsage();
      cpu.reset();
      cpu.inc((user + system) / 1e6);
    },
  });
  addDescriptors(registry);
  return addEventLoopDelay(registry);
}

/** Linux only. */
function addDescriptors(registry: Registry): void {
  const limitAtStart = findDescriptorLimit();
  if (limitAtStart === undefined) return;
  let limit = limitAtStart;
  addGauge(registry, { name: "process_max_fds", help: "Maximum number of open file descriptors" }, () => {
    limit = readDescriptorLimit();
    return limit;
  });
  addGauge(registry, { name: "process_open_fds", help: "Open file descriptors" }, () => countOpenDescriptors(limit));
}

function addEventLoopDelay(registry: Registry): () => void {
  const delays = monitorEventLoopDelay({ resolution: 50 });
  delays.enable();
  addGauge(
    registry,
    {
      name: "tollgate_event_loop_delay_max_seconds",
      help: "Maximum delay of the event loop since the last scrape, in seconds",
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
