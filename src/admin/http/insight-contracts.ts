import { Type as t } from "@sinclair/typebox";
import { errors } from "./contracts.ts";
import * as insight from "../requests/traffic-contract.ts";
import * as requests from "../requests/contract.ts";
import * as schemas from "./schemas.ts";
import * as settings from "../operations/settings-schemas.ts";

/** Leaves the body to the handler. "json" never runs; it puts the content type into the OpenAPI document. */
const byHandler = [() => null, "json" as const];
const sessionAndCsrf = { security: [{ session: [], csrf: [] }] };

// Contracts like those of `contracts.ts`, for what the console shows of single requests, models and latency.

export const listRequests = {
  query: requests.requestsQuery,
  response: { 200: requests.requestsBody, ...errors(400, 401) },
  detail: { summary: "The request log, latest first, in pages" },
};

export const streamRequests = {
  query: requests.requestFilterQuery,
  response: {
    200: t.String({
      description: "Server-sent events: `requests`, an array of them; `skipped`, how many were left out",
    }),
    ...errors(400, 401, 409, 429),
  },
  detail: { summary: "New requests as they end, as server-sent events" },
};

export const listInFlight = {
  response: { 200: requests.runningBody, ...errors(401) },
  detail: { summary: "The requests that run now, oldest first; of all processes of this instance" },
};

export const endInFlight = {
  response: { 200: schemas.okBody, ...errors(401, 403, 404) },
  detail: {
    summary: "End a running request as a broken response; it counts with the usage read so far",
    ...sessionAndCsrf,
  },
};

export const getModelUsage = {
  query: insight.modelUsageQuery,
  response: { 200: insight.modelUsageBody, ...errors(400, 401) },
  detail: { summary: "Usage and cost by model, by key, or by both" },
};

export const listTokenless = {
  query: insight.tokenlessQuery,
  response: { 200: insight.tokenlessBody, ...errors(400, 401) },
  detail: { summary: "Responses that were counted without tokens, by key, model and path" },
};

export const getLatency = {
  query: insight.latencyQuery,
  response: { 200: insight.latencyBody, ...errors(400, 401) },
  detail: { summary: "Times to the first byte, durations and output speed per time bucket; at most 5 % off" },
};

export const listFailures = {
  query: insight.failuresQuery,
  response: { 200: insight.failuresBody, ...errors(400, 401) },
  detail: { summary: "How requests ended per time bucket, and failures by outcome, code and key" },
};

export const getPrices = {
  response: { 200: insight.pricesBody, ...errors(401) },
  detail: { summary: "Prices of tokens and energy" },
};

export const setPrices = {
  parse: byHandler,
  body: insight.pricesRequest,
  response: { 200: insight.pricesBody, ...errors(400, 401, 403, 408, 413, 415) },
  detail: { summary: "Replace all prices", ...sessionAndCsrf },
};

export const explainRequest = {
  parse: byHandler,
  body: insight.explainRequest,
  response: { 200: insight.explainBody, ...errors(400, 401, 403, 408, 413, 415) },
  detail: {
    summary: "How the rewriter would change a request body, and why; nothing is forwarded",
    ...sessionAndCsrf,
  },
};

export const getSettings = {
  response: { 200: settings.settingsBody, ...errors(401) },
  detail: { summary: "Settings, versions, the database and how long data is kept" },
};

export const changePassword = {
  parse: byHandler,
  body: settings.passwordRequest,
  response: { 200: schemas.okBody, ...errors(400, 401, 403, 408, 409, 413, 415, 429) },
  detail: { summary: "Change your password, and end all other sessions", ...sessionAndCsrf },
};

export const listSessions = {
  response: { 200: settings.sessionsBody, ...errors(401) },
  detail: { summary: "The sessions of the console" },
};

export const endSession = {
  response: { 200: schemas.okBody, ...errors(401, 403, 404) },
  detail: { summary: "End a session", ...sessionAndCsrf },
};

export const endOtherSessions = {
  response: { 200: settings.endedBody, ...errors(401, 403) },
  detail: { summary: "End all sessions but the current one", ...sessionAndCsrf },
};

export const getReconciliation = {
  query: insight.reconciliationQuery,
  response: { 200: insight.reconciliationBody, ...errors(400, 401) },
  detail: { summary: "Tokens by the backend's own counters and as counted here, by day" },
};
