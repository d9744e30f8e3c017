import { existsSync, accessSync, constants } from "node:fs";
import { dirname, resolve } from "node:path";
import { AdminSetupError, requireUsableSecretKey } from "../admin/session/bootstrap.ts";
import type { Config, Environment } from "../config/config.ts";
import type { Backend, Catalog } from "../domain/models.ts";
import { matchesGlob } from "../domain/keys.ts";
import { discover, reasonOf, signInPath } from "../admin/session/oidc.ts";
import { causeOf } from "../proxy/upstream/abort-reason.ts";
import { findEngine } from "../proxy/upstream/engine.ts";
import { askBackend, probeUpstream, readStart, type UpstreamProbe } from "../proxy/upstream/probe.ts";
import { type Certificate, hasExpired, readCertificate } from "../runtime/certificate.ts";
import { createLog } from "../log/log.ts";
import { type CatalogConfig, readCatalog } from "../server/current-catalog.ts";
import { databaseFile } from "../store/sqlite/open.ts";
import { type InspectedStore, inspectStore } from "../store/open.ts";
import { measureDisk, findDescriptorLimit, recommendedDescriptors } from "../telemetry/descriptors.ts";
import { StorageError } from "../store/storage-error.ts";
import type { Facts } from "../watching/state-rules.ts";
import { judgeOnce, mergeStates, remedyOf } from "../watching/states.ts";
import { CommandError } from "./command.ts";
import { type StartConfig, toCommandError } from "./start-errors.ts";
import type { DatabaseState } from "../store/engine/contract.ts";
import { createConnections, listen, ListenError, listenError } from "../runtime/listen.ts";
import { findSocketProblem, socketPathOf } from "../runtime/unix-socket.ts";

export interface Finding {
  state: "ok" | "warning" | "failed";
  text: string;
}

const ok = (text: string): Finding => ({ state: "ok", text });
const warning = (text: string): Finding => ({ state: "warning", text });
const failed = (text: string): Finding => ({ state: "failed", text });

interface Seen<T> extends Finding {
  /** Other checks compare with it; undefined if there is nothing to compare. */
  seen?: T | undefined;
}

/** What a start does with the certificate. */
export async function checkCertificate(config: StartConfig, now: number): Promise<Seen<Certificate> | undefined> {
  const { tls } = config.listen;
  if (tls === undefined) return undefined;
  try {
    const seen = readCertificate(tls);
    const end = seen.validTo.toISOString();
    if (hasExpired(seen, now)) return { ...failed(`has expired (${end})`), seen };
    return { ...judged({ certificate: seen.validTo.getTime() }, `valid until ${end}`, now), seen };
  } catch (error) {
    return await failedLikeStart(error, config);
  }
}

/** What a start does with the addresses. @param isServed a server runs with these settings */
export async function checkAddress(
  config: StartConfig,
  certificate: Certificate | undefined,
  isServed: boolean,
): Promise<Finding> {
  const { host, port, adminHost, adminPort } = config.listen;
  const sides = [[host, port] as const, ...(adminPort === undefined ? [] : [[adminHost, adminPort] as const])];
  const names = sides.map(([at, own]) => (at.startsWith("unix:") ? at : `${at} port ${own}`)).join(" and ");
  try {
    // The ports of a server that runs are taken, and others stand in for them.
    for (const [at, own] of sides) await rehearse(at, isServed ? 0 : own, certificate, isServed);
    return ok(isServed ? `a server responds at ${names}` : `a server can listen at ${names}`);
  } catch (error) {
    return await failedLikeStart(error, config);
  }
}

/** @throws what is not a problem of the operator's */
async function failedLikeStart(error: unknown, config: StartConfig): Promise<Finding> {
  const problem = await toCommandError(error, config);
  if (problem instanceof CommandError) return failed(problem.message);
  throw problem;
}

const silent = createLog({ level: "error", format: "json", clock: Date.now, write: () => {} });

/** What a start does with the database and the key in its folder. */
export async function checkDatabase({
  storage,
  admin,
}: Pick<Config, "storage" | "admin">): Promise<Seen<InspectedStore>> {
  const name = storage.databaseUrl === undefined ? databaseFile(storage.dataDir) : "PostgreSQL";
  try {
    if (admin.secretKey === undefined) await requireUsableSecretKey(storage.dataDir);
    const seen = await inspectStore({ ...storage, clock: Date.now, log: silent });
    if (seen === undefined) return ok(`${name}: empty; the first start creates its tables`);
    const size = `${name}, ${sizeOf(seen.bytes)}`;
    return seen.pendingMigrations === 0
      ? { ...ok(size), seen }
      : { ...warning(`${size}; written by an older version, and the next start migrates it`), seen };
  } catch (error) {
    if (error instanceof StorageError || error instanceof AdminSetupError) return failed(`${name}: ${error.message}`);
    throw error;
  }
}

export async function checkDisk({ dataDir }: Config["storage"]): Promise<Finding> {
  const folder = existingParent(resolve(dataDir));
  const disk = await measureDisk(folder);
  return judged({ disk }, `${sizeOf(disk.freeBytes)} free in ${folder}`);
}

/** What a server would say of these facts. */
function judged(facts: Omit<Facts, "now">, text: string, now = Date.now()): Finding {
  const [state] = judgeOnce({ now, ...facts });
  return state === undefined ? ok(text) : warning(`${text}. ${remedyOf(state.kind)}`);
}

/** What the servers on this database say, but for what is looked at here too. */
export const findStates = ({ states = [] }: InspectedStore, now: number): Finding[] =>
  mergeStates(states, now)
    .states.filter(({ kind }) => kind !== "disk" && kind !== "certificate")
    .map(({ what, since, remedy, instance }) =>
      warning(`${what}${instance === null ? "" : `, ${instance}`}, since ${new Date(since).toISOString()}. ${remedy}`),
    );

const existingParent = (folder: string): string =>
  existsSync(folder) || dirname(folder) === folder ? folder : existingParent(dirname(folder));

export function checkDescriptors(): Finding {
  const limit = findDescriptorLimit();
  if (limit === undefined) return ok("limit unknown on this system");
  const text = `limit ${limit}`;
  return limit < recommendedDescriptors ? warning(`${text}; raise LimitNOFILE or ulimit -n`) : ok(text);
}

const probeTimeoutMs = 10_000;

export async function checkBackend(
  backend: Backend,
  catalog: Catalog,
  closedPaths: readonly string[],
): Promise<Seen<UpstreamProbe>> {
  const { file } = catalog;
  const url = file === undefined ? backend.url : `${backend.name}: ${backend.url}`;
  const keySetting = file === undefined ? "PROXY_UPSTREAM_API_KEY" : "its api_key_env";
  try {
    const seen = await probeUpstream(backend, AbortSignal.timeout(probeTimeoutMs));
    const text = `${url} responds ${seen.status} to /v1/models`;
    if (seen.status === 401 || seen.status === 403) return { ...warning(`${text}; see ${keySetting}`), seen };
    if (seen.status >= 500) return { ...failed(text), seen };
    const problems = await listEngineProblems(backend, catalog, closedPaths);
    if (problems.length > 0) return { ...warning([text, ...problems].join("; ")), seen };
    const shared = await listSharedFolders(backend);
    const rest = `; keys share what it has under ${shared.join(" and ")}, unless their paths are closed`;
    return { ...ok(shared.length === 0 ? text : text + rest), seen };
  } catch (error) {
    return failed(`${url} is not reachable (${causeOf(error)})`);
  }
}

/** Where engines do not read the salts of private caches. */
const unsalted = { vllm: "/v1/messages", sglang: "/v1/messages", "llama.cpp": "any path", ollama: "any path" } as const;

/** SGLang says it of itself, and vLLM where it serves its settings. */
const goesByPriority = /"enable_priority_scheduling":\s*true|"policy":\s*"priority"/;

/** What clients can tell the engine, and what the engine does not read of what it is told. */
async function listEngineProblems(backend: Backend, { models }: Catalog, closed: readonly string[]): Promise<string[]> {
  const signal = AbortSignal.timeout(probeTimeoutMs);
  const info = await askBackend(backend, "/server_info?config_format=json", signal)
    .then((response) => readStart(response, 16 * maxListBytes))
    .catch(() => "");
  const heeds = backend.priority === undefined && backend.engineMembers !== "drop" && goesByPriority.test(String(info));
  const isPrivate = models.some(({ privateCache, backends }) => privateCache && backends.includes(backend.name));
  const engine = isPrivate ? await findEngine(backend, signal).catch(() => undefined) : undefined;
  const path = engine && unsalted[engine];
  const isOpen = path !== undefined && !closed.some((glob) => matchesGlob(glob.toLowerCase(), path));
  return [
    ...(heeds ? ["its engine goes by the priority of clients; set priority or engine_members of the backend"] : []),
    ...(isOpen ? [`${engine} knows no private_cache on ${path}; close that, or leave private_cache out`] : []),
  ];
}

/** What the provider of OpenID Connect announces. */
export async function checkProvider(settings: NonNullable<Config["signIn"]>): Promise<Finding> {
  const { issuer, consoleUrl, scopes } = settings;
  try {
    const metadata = await discover(settings);
    const lacks = [
      metadata.code_challenge_methods_supported?.includes("S256") !== true && "PKCE (used all the same)",
      metadata.userinfo_endpoint === undefined && "userinfo (groups must be in the ID token)",
      metadata["backchannel_logout_supported"] !== true && "back-channel logout (sessions end after 12 hours)",
    ].filter((one) => one !== false);
    const unknown = scopes.split(" ").filter((one) => metadata.scopes_supported?.includes(one) === false);
    const rest = lacks.length === 0 ? "" : `; it does not announce ${lacks.join(", ")}`;
    const text = `${issuer} responds; redirect URI ${consoleUrl}${signInPath}${rest}`;
    return unknown.length === 0 ? ok(text) : warning(`${text}; OIDC_SCOPES: it does not have ${unknown.join(" ")}`);
  } catch (error) {
    return failed(`${issuer}: ${reasonOf(error)}`);
  }
}

/** What backends store whoever made it, as far as they list it. */
const sharedFolders = ["vector_stores", "assistants", "containers", "videos", "evals", "fine_tuning/jobs"];

const maxListBytes = 64 * 1024;

async function listSharedFolders(backend: Backend): Promise<string[]> {
  const hasList = async (path: string): Promise<boolean> => {
    const response = await askBackend(backend, `${path}?limit=1`, AbortSignal.timeout(probeTimeoutMs));
    return response.ok && /"data"\s*:\s*\[/.test((await readStart(response, maxListBytes)).toString());
  };
  const paths = sharedFolders.map((folder) => `/v1/${folder}`);
  const areListed = await Promise.all(paths.map((path) => hasList(path).catch(() => false)));
  return paths.filter((_, index) => areListed[index]);
}

/** What a start does with the file of `MODELS_FILE`. @throws CommandError with a line for each of its faults */
export async function checkCatalog(
  config: StartConfig & CatalogConfig,
  environment: Environment,
): Promise<Seen<Catalog> & { seen: Catalog }> {
  try {
    const seen = readCatalog(config, environment);
    const { file, backends, models } = seen;
    return {
      ...ok(`${file?.path}, ${backends.length} backends, ${models.length} models, SHA-256 ${file?.hash}`),
      seen,
    };
  } catch (error) {
    throw await toCommandError(error, config);
  }
}

const maxSkewMs = 60_000;
/** Earlier than any build of this command. */
const earliestTime = Date.UTC(2026, 10, 1);

/**
 * A wrong clock puts usage into wrong days, and ends sessions early. A request that is newer than now tells only that two
 * clocks differ: one that was ahead once leaves it there for as long as it was ahead.
 */
export function checkClock(known: {
  now: number;
  database: DatabaseState | undefined;
  backend: UpstreamProbe | undefined;
}): Finding {
  const { now, database, backend } = known;
  const text = new Date(now).toISOString();
  if (now < earliestTime) return failed(`${text} is before this version was made`);
  const lead = (database?.lastUsedAt ?? 0) - now;
  const others = { PostgreSQL: database?.serverTime, "the backend": timeOf(backend?.date) };
  const witnesses = Object.entries(others).flatMap(([name, time]) =>
    time === undefined ? [] : [{ name, lead: time - now }],
  );
  const other = witnesses.find((clock) => Math.abs(clock.lead) > maxSkewMs);
  if (other !== undefined) {
    const difference = `${text} is ${secondsOf(other.lead)} ${other.lead > 0 ? "behind" : "ahead of"} the clock of ${other.name}`;
    if (lead <= maxSkewMs || other.lead < 0) return warning(difference);
    return failed(`${difference}, and ${secondsOf(lead)} behind the newest request`);
  }
  if (lead <= maxSkewMs) return ok(text);
  const [witness] = witnesses;
  const why = witness === undefined ? "either is wrong" : `that was wrong, as ${witness.name} has the same time`;
  return warning(`${text} is ${secondsOf(lead)} behind the newest request: ${why}`);
}

function timeOf(date: string | null | undefined): number | undefined {
  const time = Date.parse(date ?? "");
  return Number.isNaN(time) ? undefined : time;
}

const secondsOf = (ms: number): string => `${Math.round(Math.abs(ms) / 1000)} s`;

const units = ["KiB", "MiB", "GiB", "TiB"];

function sizeOf(bytes: number): string {
  const power = Math.min(units.length, Math.max(1, Math.floor(Math.log2(Math.max(1, bytes)) / 10)));
  return `${(bytes / 1024 ** power).toFixed(1)} ${units[power - 1]}`;
}

/** Listens as a start does, and stops at once. @throws ListenError if a server could not listen */
async function rehearse(
  host: string,
  port: number,
  certificate: Certificate | undefined,
  isServed: boolean,
): Promise<void> {
  const path = socketPathOf(host);
  if (path !== undefined) return await requireUsableSocket(host, path, isServed);
  const unavailable = (): Response => new Response(null, { status: 503 });
  const connections = createConnections();
  const handlers = { fetch: unavailable, internalError: unavailable };
  await listen({ host, port, shared: false, certificate, connections, ...handlers }).cut();
}

async function requireUsableSocket(host: string, path: string, isServed: boolean): Promise<void> {
  const problem = isServed ? undefined : await findSocketProblem(path);
  if (problem !== undefined) throw new ListenError(problem, host);
  try {
    accessSync(dirname(path), constants.W_OK);
  } catch (error) {
    throw listenError(error, host, 0);
  }
}
