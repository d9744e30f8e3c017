import type { Config } from "../config/config.ts";
import type { Log } from "../log/log.ts";
import { addressOf, connectTo } from "../proxy/upstream/connect-timeout.ts";
import { causeOf } from "../proxy/upstream/failure-cause.ts";
import { probeUpstream } from "../proxy/upstream/probe.ts";
import { warnOfLowDescriptorLimit } from "../telemetry/descriptors.ts";

/** How long the backend may take to accept a connection before a warning is logged. */
const firstProbeMs = 10_000;

/** Logs what would otherwise show only with the first requests or under load. */
export async function warnAtStart(config: Config, log: Log, signal: AbortSignal): Promise<void> {
  warnOfLowDescriptorLimit(log);
  const { name, baseUrl, socket } = config.upstream;
  const ended = AbortSignal.any([signal, AbortSignal.timeout(firstProbeMs)]);
  try {
    // A connection is enough, and disturbs no backend; TLS fails only with a request.
    await (baseUrl.startsWith("https:")
      ? probeUpstream(config.upstream, ended)
      : connectTo(addressOf(baseUrl, socket))(ended));
  } catch (error) {
    if (signal.aborted) return;
    log.warn("Backend not reachable; requests fail until it is", { backend: name, cause: causeOf(error) });
  }
}
