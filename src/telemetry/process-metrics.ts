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
    "process_start_time_seconds",
    "Start time of the process since the Unix epoch, in seconds",
    () => performance.timeOrigin / 1000,
    "min",
  );
  addGauge(registry, "process_resident_memory_bytes", "Resident memory size, in bytes", () =>
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
  addGauge(registry, "process_max_fds", "Maximum number of open file descriptors", () => {
    limit = readDescriptorLimit();
    return limit;
  });
  addGauge(registry, "process_open_fds", "Open file descriptors", () => countOpenDescriptors(limit));
}

function addEventLoopDelay(registry: Registry): () => void {
  const delays = monitorEventLoopDelay({ resolution: 50 });
  delays.enable();
  addGauge(
    registry,
    "tollgate_event_loop_delay_max_seconds",
    "Maximum delay of the event loop since the last scrape, in seconds",
    () => {
      const { max } = delays;
      delays.reset();
      return max / 1e9;
    },
    "max",
  );
  return () => delays.disable();
}
