import { causeOf } from "./failure-cause.ts";

export interface ProbedUpstream {
  /** Origin and path prefix; no trailing slash. */
  baseUrl: string;
  /** The path of a UNIX socket, if the backend listens on one. */
  socket?: string | undefined;
  apiKey: string | undefined;
}

export interface UpstreamProbe {
  status: number;
  /** The response's Date header. */
  date: string | null;
}

/** Requests the list of models, which costs the backend least. */
export async function probeUpstream(
  { baseUrl, socket, apiKey }: ProbedUpstream,
  signal: AbortSignal,
): Promise<UpstreamProbe> {
  const response = await fetch(`${baseUrl}/v1/models`, {
    headers: apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` },
    signal,
    redirect: "manual",
    proxy: false,
    ...(socket === undefined ? {} : { unix: socket }),
    // `forward` follows the pool, so no connection of others may enter it.
    keepalive: false,
  });
  await response.body?.cancel();
  return { status: response.status, date: response.headers.get("date") };
}

export interface UpstreamCheck {
  ok: boolean;
  /** Why it is not ok: `status_503`, or as in `causeOf`. */
  cause?: string;
}

export async function checkUpstream(upstream: ProbedUpstream, signal: AbortSignal): Promise<UpstreamCheck> {
  try {
    const { status } = await probeUpstream(upstream, signal);
    // A backend that refuses the request is up.
    return status < 500 ? { ok: true } : { ok: false, cause: `status_${status}` };
  } catch (error) {
    return { ok: false, cause: causeOf(error) };
  }
}

/** More than any backend's metrics have. */
const maxMetricsBytes = 4 * 1024 * 1024;

/** @returns the backend's metrics in the Prometheus text format; undefined if it serves none, or too many */
export async function fetchBackendMetrics(
  { baseUrl, socket, apiKey }: ProbedUpstream,
  signal: AbortSignal,
): Promise<string | undefined> {
  const headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  const response = await fetch(`${baseUrl}/metrics`, {
    headers,
    signal,
    redirect: "manual",
    proxy: false,
    ...(socket === undefined ? {} : { unix: socket }),
    keepalive: false,
  });
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > maxMetricsBytes) return undefined;
  }
  return response.ok ? Buffer.concat(chunks).toString() : undefined;
}
