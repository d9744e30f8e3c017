import { Type as t } from "@sinclair/typebox";
import * as schemas from "./schemas.ts";

// One entry for each route: what it takes, and everything that it may answer. Elysia checks answers by it, and the
// console's client and the OpenAPI document are made from it.

type Refusals<Status extends number> = Record<Status | 503, typeof schemas.errorBody>;

/** Refusals all look alike. Storage may be out of reach for any route. */
const refusals = <const Status extends number>(...statuses: Status[]): Refusals<Status> =>
  Object.fromEntries([...statuses, 503].map((status) => [status, schemas.errorBody])) as Refusals<Status>;

/** The handler reads the body when its turn has come; "json" is never reached, and names the content type in the document. */
const byHandler = [() => null, "json" as const];

const open = { security: [] };
const changing = { security: [{ session: [], csrf: [] }] };

export const login = {
  parse: byHandler,
  body: schemas.loginRequest,
  response: { 200: schemas.loginBody, ...refusals(400, 401, 413, 415, 429) },
  detail: { summary: "Begin a session", ...open },
};

export const me = {
  response: { 200: schemas.meBody, 401: schemas.anonymousBody, ...refusals() },
  detail: { summary: "Who is logged in", ...open },
};

export const ingestGpuSamples = {
  parse: byHandler,
  body: schemas.gpuSamplesRequest,
  response: { 200: schemas.okBody, ...refusals(400, 401, 413, 415) },
  detail: { summary: "Take the samples of a GPU host", security: [{ bearer: [] }, { xApiKey: [] }] },
};

export const logout = {
  response: { 200: schemas.okBody, ...refusals(401, 403) },
  detail: { summary: "End the session", ...changing },
};

export const listKeys = {
  response: { 200: t.Array(schemas.keyBody), ...refusals(401) },
  detail: { summary: "All keys, by id" },
};

export const createKey = {
  parse: byHandler,
  body: schemas.newKeyRequest,
  response: { 201: schemas.keyBody, ...refusals(400, 401, 403, 409, 413, 415) },
  detail: { summary: "Create a key; the only answer that holds it in full", ...changing },
};

export const changeKey = {
  parse: byHandler,
  body: schemas.keyChangeRequest,
  response: { 200: schemas.keyBody, ...refusals(400, 401, 403, 404, 413, 415) },
  detail: { summary: "Rename, activate or deactivate a key", ...changing },
};

export const deleteKey = {
  response: { 200: schemas.okBody, ...refusals(401, 403, 404) },
  detail: { summary: "Delete a key; its usage stays", ...changing },
};

export const usageSummary = {
  response: { 200: schemas.usageSummary, ...refusals(401) },
  detail: { summary: "Today in Seoul, all keys together" },
};

export const usageTotal = {
  response: { 200: schemas.usageTotal, ...refusals(401) },
  detail: { summary: "Totals of the keys that exist" },
};

export const dailyUsage = {
  query: schemas.dailyQuery,
  response: { 200: schemas.dailyUsage, ...refusals(400, 401) },
  detail: { summary: "Usage by Seoul day and key, latest day first" },
};

export const usageHistory = {
  query: schemas.historyQuery,
  response: { 200: schemas.usageHistory, ...refusals(400, 401) },
  detail: { summary: "Usage by bucket and key; a key without traffic in a bucket is left out" },
};

export const latestGpuSamples = {
  response: { 200: t.Array(schemas.gpuSample), ...refusals(401) },
  detail: { summary: "The latest sample of each GPU, by gpu_id" },
};

export const powerHistory = {
  query: schemas.historyQuery,
  response: { 200: schemas.powerHistory, ...refusals(400, 401) },
  detail: { summary: "By bucket, the highest power that all GPUs drew together" },
};

export const overview = {
  response: { 200: schemas.overviewBody, ...refusals(401) },
  detail: { summary: "What goes on now" },
};

export const openApi = {
  response: { 200: t.Record(t.String(), t.Unknown()), ...refusals(401) },
  detail: { summary: "This document" },
};

export const health = {
  response: { 200: schemas.healthBody },
  detail: { summary: "The process is up", ...open },
};

export const readiness = {
  response: { 200: schemas.readinessBody, 503: schemas.readinessBody },
  detail: { summary: "Whether requests can be served and counted", ...open },
};

export const metrics = {
  response: { 200: schemas.metricsText, ...refusals(401) },
  detail: { summary: "Metrics for Prometheus", security: [{ session: [] }, { metricsToken: [] }] },
};
