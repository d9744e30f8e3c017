import { causeOf } from "./abort-reason.ts";
import type { Backend } from "../../domain/models.ts";

export type ProbedUpstream = Pick<Backend, "baseUrl" | "apiKey"> & Partial<Pick<Backend, "socket">>;

export interface UpstreamProbe {
  status: number;
  /** The response's Date header. */
  date: string | null;
}

/** How many of these requests are under way to each server. */
const underWay = new Map<string, number>();

export const serverOf = ({ baseUrl, socket }: Omit<ProbedUpstream, "apiKey">): string =>
  socket ?? new URL(baseUrl).origin;

/** They connect too, and no connect timeout may take them for requests of clients. */
export const countProbes = (server: string): number => underWay.get(server) ?? 0;

/** Requests something of a backend for ourselves. */
export async function askBackend(upstream: ProbedUpstream, path: string, signal: AbortSignal): Promise<Response> {
  const { baseUrl, socket, apiKey } = upstream;
  const server = serverOf(upstream);
  underWay.set(server, countProbes(server) + 1);
  try {
    return await fetch(`${baseUrl}${path}`, {
      headers: apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` },
      signal,
      redirect: "manual",
      proxy: false,
      ...(socket === undefined ? {} : { unix: socket }),
      // `forward` follows the pool, so no connection of others may enter it.
      keepalive: false,
    });
  } finally {
    underWay.set(server, countProbes(server) - 1);
  }
}

const listOfModels = "/v1/models";

/** @param path by default the list of models, which costs the backend least */
export async function probeUpstream(
  upstream: ProbedUpstream,
  signal: AbortSignal,
  path = listOfModels,
): Promise<UpstreamProbe> {
  const response = await askBackend(upstream, path, signal);
  await response.body?.cancel();
  return { status: response.status, date: response.headers.get("date") };
}

export interface UpstreamCheck {
  ok: boolean;
  /** Why it is not ok: `status_503`, or as in `causeOf`. */
  cause?: string;
}

export async function checkUpstream(
  upstream: ProbedUpstream,
  signal: AbortSignal,
  path = listOfModels,
): Promise<UpstreamCheck> {
  try {
    const { status } = await probeUpstream(upstream, signal, path);
    if (status === 404 && path !== listOfModels) return await checkUpstream(upstream, signal);
    // A backend that refuses the request is up.
    return status < 500 ? { ok: true } : { ok: false, cause: `status_${status}` };
  } catch (error) {
    return { ok: false, cause: causeOf(error) };
  }
}

const healthCheckMs = 5000;

/** By its health path, or by the list of models where it has none. */
export const checkHealth = (backend: ProbedUpstream & Pick<Backend, "health">): Promise<UpstreamCheck> =>
  checkUpstream(backend, AbortSignal.timeout(healthCheckMs), backend.health);

/** More than any backend's metrics, or its list of models, have. */
const maxPageBytes = 4 * 1024 * 1024;

/** @returns the backend's metrics in the Prometheus text format; undefined if it serves none, or too many */
export async function fetchBackendMetrics(upstream: ProbedUpstream, signal: AbortSignal): Promise<string | undefined> {
  return (await fetchPage(upstream, "/metrics", signal))?.toString();
}

/** @returns the bytes of the backend's list of models; undefined if it serves none, or one that is too long */
export const fetchModelList = (
  upstream: ProbedUpstream,
  signal: AbortSignal,
): Promise<Buffer<ArrayBuffer> | undefined> => fetchPage(upstream, listOfModels, signal);

async function fetchPage(
  upstream: ProbedUpstream,
  path: string,
  signal: AbortSignal,
): Promise<Buffer<ArrayBuffer> | undefined> {
  const response = await askBackend(upstream, path, signal);
  const read = await readStart(response, maxPageBytes);
  return response.ok && read.length <= maxPageBytes ? read : undefined;
}

/** @returns the beginning of a body: all of it if that is no longer than `maxBytes`, else more than `maxBytes` */
export async function readStart({ body }: Response, maxBytes: number): Promise<Buffer<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body ?? []) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > maxBytes) break;
  }
  return Buffer.concat(chunks);
}
