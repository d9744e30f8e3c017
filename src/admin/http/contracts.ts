import { Type as t } from "@sinclair/typebox";
import * as gpu from "../gpu/contract.ts";
import * as keys from "../keys/contract.ts";
import { ownKeyBody } from "../keys/own-key-contract.ts";
import { overviewBody } from "../operations/contract.ts";
import * as schemas from "./schemas.ts";
import * as usage from "../usage/contract.ts";

// One contract per route: what it takes, and every response that it may send. Elysia validates queries and responses
// with them; the console's client and the OpenAPI document are made from them.

type Errors<Status extends number> = Record<Status | 503, typeof schemas.errorBody>;

/** All errors have one shape. Every route may respond with 503, since the database may be unavailable. */
export const errors = <const Status extends number>(...statuses: Status[]): Errors<Status> =>
  Object.fromEntries([...statuses, 503].map((status) => [status, schemas.errorBody])) as Errors<Status>;

/** Leaves the body to the handler. "json" never runs; it puts the content type into the OpenAPI document. */
const byHandler = [() => null, "json" as const];

const open = { security: [] };
const sessionAndCsrf = { security: [{ session: [], csrf: [] }] };

export const getHealth = {
  response: { 200: schemas.healthBody },
  detail: { summary: "Whether the process is up", ...open },
};

export const getReadiness = {
  response: { 200: schemas.readinessBody, 503: schemas.readinessBody },
  detail: { summary: "Whether requests can be served and counted", ...open },
};

export const getPushGpuScript = {
  response: { 200: schemas.scriptText },
  detail: { summary: "A shell script that sends GPU samples to this server", ...open },
};

export const logIn = {
  parse: byHandler,
  body: schemas.loginRequest,
  response: { 200: schemas.loginBody, ...errors(400, 401, 408, 413, 415, 429) },
  detail: { summary: "Start a session", ...open },
};

export const getMe = {
  response: { 200: schemas.meBody, 401: schemas.anonymousBody, ...errors() },
  detail: { summary: "The current session", ...open },
};

export const getMetrics = {
  response: { 200: schemas.metricsText, ...errors(401) },
  detail: { summary: "Metrics in the Prometheus text format", security: [{ session: [] }, { metricsToken: [] }] },
};

export const getAlerts = {
  response: { 200: schemas.alertsText, ...errors(401) },
  detail: { summary: "Alert rules for Prometheus", security: [{ session: [] }, { metricsToken: [] }] },
};

export const getDashboard = {
  response: { 200: schemas.dashboard, ...errors(401) },
  detail: { summary: "A dashboard for Grafana", security: [{ session: [] }, { metricsToken: [] }] },
};

export const addGpuSamples = {
  parse: byHandler,
  body: gpu.gpuSamplesRequest,
  response: { 200: schemas.okBody, ...errors(400, 401, 403, 408, 413, 415, 429) },
  detail: { summary: "Store the samples of a GPU host", security: [{ bearer: [] }, { xApiKey: [] }] },
};

export const getOwnKey = {
  response: { 200: ownKeyBody, ...errors(401, 403) },
  detail: { summary: "The limits and the usage of the API key itself", security: [{ bearer: [] }, { xApiKey: [] }] },
};

export const listKeys = {
  query: keys.keyQuery,
  response: { 200: t.Array(keys.keyBody), ...errors(400, 401) },
  detail: { summary: "All keys, by id" },
};

export const getUsageSummary = {
  response: { 200: usage.usageSummary, ...errors(401) },
  detail: { summary: "Usage of all keys together, today in Seoul time" },
};

export const getUsageTotal = {
  response: { 200: usage.usageTotal, ...errors(401) },
  detail: { summary: "Total usage of the keys that exist" },
};

export const listDailyUsage = {
  query: usage.dailyQuery,
  response: { 200: usage.dailyUsage, ...errors(400, 401) },
  detail: { summary: "Usage per Seoul day and key, latest day first" },
};

export const listUsageHistory = {
  query: usage.historyQuery,
  response: { 200: usage.usageHistory, ...errors(400, 401) },
  detail: { summary: "Usage per time bucket and key; a bucket omits keys without traffic" },
};

export const listUsagePoints = {
  query: usage.pointsQuery,
  response: { 200: usage.usagePoints, ...errors(400, 401) },
  detail: { summary: "Usage per time bucket and key between two times of the last year" },
};

export const getUsageChart = {
  query: usage.chartQuery,
  response: { 200: usage.usageChart, ...errors(400, 401) },
  detail: { summary: "Usage per time bucket of the keys that use the most, and of all others together, as columns" },
};

export const getUsageByDay = {
  query: usage.byDayQuery,
  response: { 200: usage.usageByDay, ...errors(400, 401) },
  detail: { summary: "Usage per Seoul day, latest day first, as columns" },
};

export const listUsageByDayAndKey = {
  query: usage.byDayAndKeyQuery,
  response: { 200: usage.usageByDayAndKey, ...errors(400, 401) },
  detail: { summary: "Usage per Seoul day and key, latest day first, as columns, in pages of whole days" },
};

export const listGpuSamples = {
  response: { 200: t.Array(gpu.gpuSample), ...errors(401) },
  detail: { summary: "The latest sample of each GPU, by gpu_id" },
};

export const listPowerHistory = {
  query: usage.historyQuery,
  response: { 200: gpu.powerHistory, ...errors(400, 401) },
  detail: { summary: "The highest total power draw of all GPUs per time bucket" },
};

export const listGpuHistory = {
  query: gpu.gpuHistoryQuery,
  response: { 200: gpu.gpuHistory, ...errors(400, 401) },
  detail: { summary: "Mean power and energy of all GPUs, or every measure of one, per time bucket with a reading" },
};

export const getOverview = {
  response: { 200: overviewBody, ...errors(401) },
  detail: { summary: "Current usage, requests in flight, GPUs and backend" },
};

export const getOpenApi = {
  response: { 200: t.Record(t.String(), t.Unknown()), ...errors(401) },
  detail: { summary: "This document" },
};

export const logOut = {
  response: { 200: schemas.okBody, ...errors(401, 403) },
  detail: { summary: "End the session", ...sessionAndCsrf },
};

export const createKey = {
  parse: byHandler,
  body: keys.newKeyRequest,
  response: { 201: keys.keyBody, ...errors(400, 401, 403, 408, 409, 413, 415) },
  detail: { summary: "Create a key; only this response shows it in full", ...sessionAndCsrf },
};

export const updateKey = {
  parse: byHandler,
  body: keys.keyChangeRequest,
  response: { 200: keys.keyBody, ...errors(400, 401, 403, 404, 408, 413, 415) },
  detail: { summary: "Change a key: its name, state, limits and notes", ...sessionAndCsrf },
};

export const rotateKey = {
  parse: byHandler,
  body: keys.rotationRequest,
  response: { 200: keys.keyBody, ...errors(400, 401, 403, 404, 408, 409, 413, 415) },
  detail: { summary: "Replace the secret of a key; only this response shows the new one in full", ...sessionAndCsrf },
};

export const deleteKey = {
  query: keys.keyDeletionQuery,
  response: { 200: schemas.okBody, ...errors(400, 401, 403, 404) },
  detail: { summary: "Delete a key; its usage is kept", ...sessionAndCsrf },
};
