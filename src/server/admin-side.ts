import { bootstrapAdmin } from "../admin/session/bootstrap.ts";
import type { AdminAppDeps } from "./app.ts";
import type { Config } from "../config/config.ts";
import { explainRewrite } from "../proxy/rewrite/explain.ts";
import { checkUpstream } from "../proxy/upstream/probe.ts";
import type { Connections } from "../runtime/listen.ts";
import { reportSettings } from "../config/settings-report.ts";
import { metricsContentType } from "../telemetry/metrics.ts";
import { build } from "../config/version.ts";
import { clientAddressOf } from "./client-address-of.ts";
import type { Services } from "./services.ts";

/** What `/api` and the console are made of. */
export async function adminSideOf(
  config: Config,
  { store, ledger, endings, clock, log, print, metrics, stats, upstreamFailures, draining, environment = {} }: Services,
  connections: Connections,
): Promise<AdminAppDeps> {
  const { username, password, secretKey } = config.admin;
  const { signingKey } = await bootstrapAdmin({
    store,
    config: { username, password, secretKey },
    dataDir: config.storage.dataDir,
    print,
  });
  return {
    store,
    config: { username, metricsToken: config.admin.metricsToken },
    signingKey,
    clock,
    log,
    clientAddress: (request) => clientAddressOf(config)(request, connections.peerAddress(request)),
    metricsText: stats.metricsText,
    metricsContentType,
    gpuSamplesReceived: metrics.gpuSamplesReceived,
    separatePorts: config.listen.adminPort !== undefined,
    isHttps: config.listen.tls !== undefined,
    inFlight: stats.inFlight,
    upstreamUrl: config.upstream.name,
    probeUpstream: (signal) => checkUpstream(config.upstream, signal),
    requestsFailSince: upstreamFailures.since,
    running: stats.running,
    endRequest: stats.endRequest,
    endRunning: endings.endRunning,
    explain: (path, body) => explainRewrite(path, body, config.rewrite),
    settings: () => reportSettings(environment),
    versions: { tollgate: build.version, commit: build.commit, bun: Bun.version },
    passwordFromEnvironment: password !== undefined,
    retention: config.storage.retention,
    forceStreamUsage: config.rewrite.forceStreamUsage,
    draining: draining.signal,
    countsState: ledger.state,
  };
}
