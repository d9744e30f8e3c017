import { bootstrapAdmin } from "../admin/session/bootstrap.ts";
import type { AdminAppDeps } from "./app.ts";
import type { Config } from "../config/config.ts";
import { chooseClientRules } from "../proxy/rewrite/client-rules.ts";
import { explainRewrite } from "../proxy/rewrite/explain.ts";
import { goesByClient } from "../proxy/rewrite/rewrite.ts";
import { createModelNames } from "../proxy/rewrite/model-names.ts";
import type { Connections } from "../runtime/listen.ts";
import { reportSettings } from "../config/settings-report.ts";
import { metricsContentType } from "../telemetry/metrics.ts";
import { build } from "../config/version.ts";
import type { Services } from "./services.ts";
import type { BackendStatus, Choice } from "../domain/backends.ts";
import type { Catalog } from "../domain/models.ts";
import { nothingKnown } from "../routing/affinity.ts";
import { choose } from "../routing/choice.ts";

export type AdminConfig = Pick<Config, "admin" | "signIn" | "storage" | "listen">;

/** What `/api` and the console are made of. */
export async function adminSideOf(
  { admin, signIn, storage, listen }: AdminConfig,
  services: Services,
  connections: Connections,
): Promise<AdminAppDeps> {
  const { username, password, secretKey, metricsToken } = admin;
  const { catalog, stats, backendStates, clientAddress } = services;
  const { signingKey } = await bootstrapAdmin({
    ...services,
    config: { username, password, secretKey },
    dataDir: storage.dataDir,
  });
  return {
    ...services,
    ...stats,
    ...askingRewriter(services),
    config: { username, metricsToken },
    signIn,
    every(ms, work) {
      const timer = setInterval(() => void work(), ms);
      services.draining.signal.addEventListener("abort", () => clearInterval(timer));
    },
    signingKey,
    clientAddress: (request) => clientAddress(request, connections.peerAddress(request)),
    metricsContentType,
    gpuSamplesReceived: services.metrics.gpuSamplesReceived,
    separatePorts: listen.adminPort !== undefined,
    isHttps: listen.tls !== undefined,
    closeSoon: connections.closeSoon,
    upstreamUrl: catalog.get().backends[0]?.url ?? "",
    testNotice: services.notices.test,
    catalog: catalog.get,
    discoveredModels: services.backendModels.discovered.list,
    // A parent process that does not reply must not take the overview with it.
    backendStates: () => backendStates.list().catch(() => []),
    setDraining: services.sharedDraining.setDraining,
    endRunning: services.revocations.endRunning,
    foresee,
    settings: () => reportSettings(services.environment ?? {}),
    versions: { tollgate: build.version, commit: build.commit, bun: Bun.version },
    passwordFromEnvironment: password !== undefined,
    retention: storage.retention,
  };
}

/** Asks the rewriter as a request would, without one. */
const askingRewriter = ({
  catalog,
  backendModels,
  engines,
}: Pick<Services, "catalog" | "backendModels" | "engines">): Pick<AdminAppDeps, "explain" | "learnClientNeeds"> => ({
  async explain(path, body, userAgent) {
    if (goesByClient(catalog.get())) await engines.learn();
    const client = { userAgent, enginesOf: engines.enginesOf };
    return await explainRewrite(path, body, createModelNames(catalog.get(), backendModels.discovered), client);
  },
  async learnClientNeeds() {
    await engines.learn();
    return (userAgent, backends) => ({
      engines: engines.enginesOf(backends),
      rules: [...chooseClientRules("auto", { userAgent, enginesOf: engines.enginesOf }, backends)],
    });
  },
});

const standings = { in: "in", out: "out", draining: "closed" } as const;

/** Where a request would go now, by the rules of the choice; undefined: it would wait. */
export function foresee(
  { backends }: Pick<Catalog, "backends">,
  states: readonly BackendStatus[],
  candidates: readonly string[],
): Choice | undefined {
  const rows = candidates.flatMap((name) => {
    const backend = backends.find((one) => one.name === name);
    const status = states.find((one) => one.name === name);
    if (backend === undefined || status === undefined) return [];
    const { spill, maxConcurrency } = backend;
    return { name, spill, maxConcurrency, inFlight: status.inFlight, standing: standings[status.state] };
  });
  return choose(rows, { affinity: "", tried: [], mayReturn: false, workAt: () => nothingKnown, tokens: 0 });
}
