// `/api`, health and metrics: every route on one screen, in groups by what guards them. A folder has the handlers of
// one noun, and their contracts.
//
// It keeps true: a guard stands at a group and not in a handler: nothing, a metrics token or a session, a key for GPUs,
// a key for inference, or a role, of a session or a token; some ask for a session. What changes something asks a
// session for its CSRF token too, and is wrapped by `changes`. The console's client gets its types, and the OpenAPI
// document its content, from these routes. The proxy is not imported: what is asked of it, such as an explanation, is
// an argument.

import { Elysia } from "elysia";
import * as auth from "./session/auth.ts";
import { changes, listAudit } from "./session/audit.ts";
import type { AdminDeps } from "./http/deps.ts";
import { compressJson } from "./http/compression.ts";
import { requireCsrfToken } from "./session/csrf.ts";
import { adminHeaders, toApiError } from "./http/errors.ts";
import * as gpu from "./gpu/gpu.ts";
import * as postedSamples from "./gpu/posted-samples.ts";
import * as backends from "./operations/backends.ts";
import * as health from "./operations/health.ts";
import * as clientRules from "./requests/client-rules.ts";
import * as explain from "./requests/explain.ts";
import * as failures from "./requests/failures.ts";
import * as groups from "./requests/groups.ts";
import * as latency from "./requests/latency.ts";
import * as keys from "./keys/keys.ts";
import * as subjects from "./keys/subjects.ts";
import { createLogin } from "./session/login.ts";
import { Provider, signInPath } from "./session/oidc.ts";
import { grafanaDashboard } from "../watching/grafana-dashboard.ts";
import * as metrics from "./operations/metrics.ts";
import * as costs from "./usage/costs.ts";
import { notFoundRoutes } from "./http/not-found.ts";
import { type OpenApiDocument, openApiDocument } from "./http/openapi.ts";
import * as inFlight from "./requests/in-flight.ts";
import * as overview from "./operations/overview.ts";
import * as ownActivity from "./keys/own-activity.ts";
import * as ownKey from "./keys/own-key.ts";
import * as me from "./keys/me.ts";
import * as prices from "./usage/prices.ts";
import * as account from "./session/own-account.ts";
import * as tokens from "./session/tokens.ts";
import { readQuery } from "./http/query.ts";
import * as reconciliation from "./usage/reconciliation.ts";
import * as requests from "./requests/requests.ts";
import * as settings from "./operations/settings.ts";
import { createSessions, rememberSessions } from "./session/session.ts";
import * as chart from "./usage/chart.ts";
import * as usage from "./usage/usage.ts";
import { requireApiKey } from "./keys/require-key.ts";
import * as sessionContract from "./session/contract.ts";
import * as keyContract from "./keys/contract.ts";
import * as subjectContract from "./keys/subjects-contract.ts";
import * as meContract from "./keys/me-contract.ts";
import * as usageContract from "./usage/contract.ts";
import * as costContract from "./usage/cost-contract.ts";
import * as requestContract from "./requests/contract.ts";
import * as trafficContract from "./requests/traffic-contract.ts";
import * as operationsContract from "./operations/contract.ts";

type Context = ReturnType<typeof contextOf>;
type Role = Parameters<typeof auth.requireRole>[0];
type Security = Record<string, string[]>[];

function contextOf(given: AdminDeps) {
  const { store, clock } = given;
  const deps = { ...given, store: { ...store, sessions: rememberSessions(store.sessions, clock) } };
  const sessions = createSessions(deps);
  const provider = deps.signIn && new Provider(deps.signIn, { ...deps, sessions });
  return { ...deps, sessions, login: createLogin({ ...deps, sessions }), provider };
}

// Each group is an app of its own: in one app that has hooks already, Elysia (1.4.30) also runs a guard for the
// routes above it. Remove when a hook applies only to the routes below it.

const withSession = { session: [] };
const withCsrf = { session: [], csrf: [] };
const withKey = [{ bearer: [] }, { xApiKey: [] }];

/** Serves visitors, monitors, GPU hosts and holders of keys: all that have no session. */
function routesForOthers(context: Context) {
  const open = new Elysia({ detail: { security: [] } })
    .get("/healthz", health.getHealth, operationsContract.getHealth)
    .get("/readyz", health.getReadiness(context), operationsContract.getReadiness)
    .get("/api/login", auth.getLogin(context), sessionContract.getLogin)
    .post("/api/login", auth.logIn(context), sessionContract.logIn)
    .get("/api/me", auth.getMe(context), sessionContract.getMe);

  const withMetricsTokenOrSession = new Elysia({ detail: { security: [withSession, { metricsToken: [] }] } })
    .onBeforeHandle(metrics.requireMetricsTokenOrSession(context))
    .get("/metrics", metrics.getMetrics(context), operationsContract.getMetrics)
    .get("/alerts.yaml", metrics.getAlerts, operationsContract.getAlerts)
    .get("/grafana.json", grafanaDashboard, operationsContract.getDashboard);

  const withGpuKey = new Elysia({ detail: { security: withKey } })
    .derive(requireApiKey(context, "gpu"))
    .post("/api/gpu-stats", postedSamples.addGpuSamples(context), postedSamples.addGpuSamplesContract);

  const withInferenceKey = new Elysia({ detail: { security: withKey } })
    .derive(requireApiKey(context, "inference"))
    .get("/api/own-key", ownKey.getOwnKey(context), ownKey.ownKeyContract)
    .get("/api/own-key/activity", ownActivity.getOwnActivity(context), ownActivity.ownActivityContract);

  return new Elysia().use(open).use(withMetricsTokenOrSession).use(withGpuKey).use(withInferenceKey);
}

/** What browsers and the provider call. Without one, these addresses are the console's, as any other. */
function routesOfSignIn({ provider }: Context): Elysia {
  const app = new Elysia({ detail: { hide: true } });
  if (provider !== undefined) {
    app.get(signInPath, provider.goThrough);
    app.post(`${signInPath}/logout`, provider.logOut, { parse: "none" });
  }
  return app;
}

/** A group that takes a body or changes something. @param security what the document shows that it takes */
const withBody = (context: Context, role: Role, security: Security = [withCsrf, { token: [role] }]) =>
  new Elysia({ detail: { security } })
    .derive(auth.requireActor(context))
    // The next guard reads the body. Elysia would, for a route that is wrapped by `changes`.
    .onParse(() => null)
    .derive(requireCsrfToken(context))
    .onTransform(auth.requireRole(role));

/** Everybody who may see of others reads; nothing here changes anything. */
const routesForViewers = (context: Context, document: () => OpenApiDocument) =>
  new Elysia({ detail: { security: [withSession, { token: ["viewer"] }] } })
    .derive(auth.requireActor(context))
    .onTransform(auth.requireRole("viewer"))
    .onTransform(readQuery)
    .mapResponse(compressJson)
    .get("/api/keys", keys.listKeys(context), keyContract.listKeys)
    .get("/api/key-policy", keys.getKeyPolicy(context), keyContract.getKeyPolicy)
    .get("/api/teams", subjects.listTeams(context), subjectContract.listTeams)
    .get("/api/teams/:id", subjects.getTeam(context), subjectContract.getTeam)
    .get("/api/users", subjects.listUsers(context), subjectContract.listUsers)
    .get("/api/users/:id", subjects.getUser(context), subjectContract.getUser)
    .get("/api/usage/summary", usage.getUsageSummary(context), usageContract.getUsageSummary)
    .get("/api/usage/total", usage.getUsageTotal(context), usageContract.getUsageTotal)
    .get("/api/usage/daily", usage.listDailyUsage(context), usageContract.listDailyUsage)
    .get("/api/usage/history", usage.listUsageHistory(context), usageContract.listUsageHistory)
    .get("/api/usage/chart", chart.getUsageChart(context), usageContract.getUsageChart)
    .get("/api/usage/costs", costs.listCosts(context), costContract.listCosts)
    .get("/api/gpu-stats", gpu.listGpuSamples(context), gpu.gpuSamplesContract)
    .get("/api/gpu-stats/power-history", gpu.listPowerHistory(context), gpu.powerHistoryContract)
    .get("/api/gpu-stats/history", gpu.listGpuHistory(context), gpu.gpuHistoryContract)
    .get("/api/states", health.listStates(context), operationsContract.listStates)
    .get("/api/overview", overview.getOverview(context), operationsContract.getOverview)
    .get("/api/backends", backends.listBackends(context), backends.backendsContract)
    .get("/api/requests", requests.listRequests(context), requestContract.listRequests)
    .get("/api/requests/groups", groups.listGroups(context), groups.groupsContract)
    .get("/api/in-flight", inFlight.listInFlight(context), requestContract.listInFlight)
    .get("/api/client-rules", clientRules.listClientRules(context), clientRules.clientRulesContract)
    .get("/api/latency", latency.getLatency(context), trafficContract.getLatency)
    .get("/api/failures", failures.listFailures(context), trafficContract.listFailures)
    .get("/api/reconciliation", reconciliation.getReconciliation(context), costContract.getReconciliation)
    .get("/api/prices", prices.getPrices(context), costContract.getPrices)
    .get("/api/audit", listAudit(context), sessionContract.listAudit)
    .get("/api/settings", settings.getSettings(context), operationsContract.getSettings)
    .get("/api/openapi.json", document, operationsContract.getOpenApi);

/** What an administrator changes, in the console or by a program. */
const routesForAdmins = (context: Context) =>
  withBody(context, "admin")
    .post("/api/keys", changes("key.create", keys.createKey(context)), keyContract.createKey)
    .patch("/api/keys/:id", changes("key.update", keys.updateKey(context)), keyContract.updateKey)
    .post("/api/keys/:id/rotate", changes("key.rotate", keys.rotateKey(context)), keyContract.rotateKey)
    .delete("/api/keys/:id", changes("key.delete", keys.deleteKey(context)), keyContract.deleteKey)
    .put("/api/key-policy", changes("key_policy.set", keys.setKeyPolicy(context)), keyContract.setKeyPolicy)
    .post("/api/teams", changes("team.create", subjects.createTeam(context)), subjectContract.createTeam)
    .patch("/api/teams/:id", changes("team.update", subjects.updateTeam(context)), subjectContract.updateTeam)
    .delete("/api/teams/:id", changes("team.delete", subjects.deleteTeam(context)), subjectContract.deleteTeam)
    .post("/api/users", changes("user.create", subjects.createUser(context)), subjectContract.createUser)
    .patch("/api/users/:id", changes("user.update", subjects.updateUser(context)), subjectContract.updateUser)
    .delete("/api/users/:id", changes("user.delete", subjects.deleteUser(context)), subjectContract.deleteUser)
    .patch("/api/backends/:name", changes("backend.update", backends.updateBackend(context)), backends.backendContract)
    .delete("/api/in-flight/:id", changes("request.end", inFlight.endInFlight(context)), requestContract.endInFlight)
    .post(
      "/api/states/silence",
      changes("state.silence", health.silenceState(context)),
      operationsContract.silenceState,
    )
    .post(
      "/api/notices/test",
      changes("notice.test", health.sendTestNotice(context)),
      operationsContract.sendTestNotice,
    )
    .put("/api/prices", changes("prices.set", prices.setPrices(context)), costContract.setPrices);

const readsOfSession = (context: Context, role: Role) =>
  new Elysia({ detail: { security: [withSession] } })
    .derive(auth.requireActor(context))
    .derive(auth.requireSession)
    .onTransform(auth.requireRole(role))
    .mapResponse(compressJson);

/** Who may act for whom: a program must not give itself rights. */
const routesForSessionsOfAdmins = (context: Context) =>
  new Elysia()
    .use(readsOfSession(context, "admin").get("/api/tokens", tokens.listTokens(context), sessionContract.listTokens))
    .use(
      withBody(context, "admin", [withCsrf])
        .derive(auth.requireSession)
        .post("/api/tokens", changes("token.create", tokens.createToken(context)), sessionContract.createToken)
        .delete("/api/tokens/:id", changes("token.delete", tokens.deleteToken(context)), sessionContract.deleteToken)
        .post(
          "/api/password",
          changes("password.change", account.changePassword(context)),
          sessionContract.changePassword,
        ),
    );

/** What everybody has of their own; keys, whoever signed in at a provider. */
function routesForMembers(context: Context) {
  const reads = readsOfSession(context, "member").get(
    "/api/sessions",
    account.listSessions(context),
    sessionContract.listSessions,
  );
  const writes = withBody(context, "member", [withCsrf])
    .derive(auth.requireSession)
    .delete("/api/sessions/:id", changes("session.end", account.endSession(context)), sessionContract.endSession)
    .delete(
      "/api/sessions",
      changes("session.end_others", account.endOtherSessions(context)),
      sessionContract.endOtherSessions,
    )
    .post("/api/logout", changes("session.log_out", auth.logOut(context)), sessionContract.logOut);
  const ofUser = readsOfSession(context, "member")
    .derive(me.requireUser(context))
    .get("/api/me/keys", me.listOwnKeys(context), meContract.listOwnKeys)
    .get("/api/me/usage", me.getOwnUsage(context), meContract.getOwnUsage);
  const byUser = withBody(context, "member", [withCsrf])
    .derive(auth.requireSession)
    .derive(me.requireUser(context))
    .post("/api/me/keys", changes("key.create", me.createOwnKey(context)), meContract.createOwnKey)
    .patch("/api/me/keys/:id", changes("key.update", me.updateOwnKey(context)), meContract.updateOwnKey)
    .post("/api/me/keys/:id/rotate", changes("key.rotate", me.rotateOwnKey(context)), meContract.rotateOwnKey);
  return new Elysia().use(reads).use(writes).use(ofUser).use(byUser);
}

/** Every route of the admin API, grouped by what guards it. The console's client is typed by the inferred return type. */
export function adminRoutes(deps: AdminDeps) {
  const context = contextOf(deps);
  const app = new Elysia()
    .onError(({ error, set, path, status }) => {
      const { status: code, message, headers } = toApiError(error, path, deps.log);
      Object.assign(set.headers, headers);
      return status(code, { error: message });
    })
    .onTransform(({ set }) => {
      Object.assign(set.headers, adminHeaders);
    })
    .use(routesForOthers(context))
    .use(routesOfSignIn(context))
    .use(routesForViewers(context, (): OpenApiDocument => openApiDocument(app)))
    .use(
      withBody(context, "viewer").post("/api/explain", explain.explainRequest(context), requestContract.explainRequest),
    )
    .use(routesForAdmins(context))
    .use(routesForSessionsOfAdmins(context))
    .use(routesForMembers(context));
  return app.use(notFoundRoutes(app.routes));
}
