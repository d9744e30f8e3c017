import { bootstrapAdmin } from "../admin/session/bootstrap.ts";
import type { AdminAppDeps } from "./app.ts";
import type { Config } from "../config/config.ts";
import { explainRewrite } from "../proxy/rewrite/explain.ts";
import { checkUpstream } from "../proxy/upstream/probe.ts";
import type { Connections } from "../runtime/listen.ts";
import { reportSettings } from "../config/settings-report.ts";
import { metricsContentType } from "../telemetry/metrics.ts";
import { build } from "../config/version.ts";
import type { Services } from "./services.ts";

type AdminConfig = Pick<Config, "admin" | "upstream" | "rewrite" | "storage" | "listen">;

/** What `/api` and the console are made of. */
export async function adminSideOf(
  { admin, upstream, rewrite, storage, listen }: AdminConfig,
  {
    store,
    ledger,
    admissions,
    revocations,
    clock,
    log,
    print,
    metrics,
    stats,
    upstreamFailures,
    draining,
    environment = {},
    clientAddress,
  }: Services,
  connections: Connections,
): Promise<AdminAppDeps> {
  const { username, password, secretKey, metricsToken } = admin;
  const { signingKey } = await bootstrapAdmin({
    store,
    config: { username, password, secretKey },
    dataDir: storage.dataDir,
    print,
  });
  return {
    store,
    config: { username, metricsToken },
    signingKey,
    clock,
    log,
    clientAddress: (request) => clientAddress(request, connections.peerAddress(request)),
    metricsText: stats.metricsText,
    metricsContentType,
    gpuSamplesReceived: metrics.gpuSamplesReceived,
    separatePorts: listen.adminPort !== undefined,
    isHttps: listen.tls !== undefined,
    inFlight: stats.inFlight,
    upstreamUrl: upstream.name,
    probeUpstream: (signal) => checkUpstream(upstream, signal),
    requestsFailSince: upstreamFailures.since,
    running: stats.running,
    endRequest: stats.endRequest,
    endRunning: revocations.endRunning,
    explain: (path, body) => explainRewrite(path, body, rewrite),
    settings: () => reportSettings(environment),
    versions: { tollgate: build.version, commit: build.commit, bun: Bun.version },
    passwordFromEnvironment: password !== undefined,
    retention: storage.retention,
    forceStreamUsage: rewrite.forceStreamUsage,
    draining: draining.signal,
    countsState: ledger.state,
    limitsState: () => (admissions.isDegraded() ? "degraded" : "ok"),
  };
}
