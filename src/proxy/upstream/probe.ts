export interface ProbedUpstream {
  /** Origin and path prefix; no trailing slash. */
  baseUrl: string;
  apiKey: string | undefined;
}

/** Requests the list of models, which costs the backend least. @returns the status of the response */
export async function probeUpstream({ baseUrl, apiKey }: ProbedUpstream, signal: AbortSignal): Promise<number> {
  const response = await fetch(`${baseUrl}/v1/models`, {
    headers: apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` },
    signal,
    redirect: "manual",
    proxy: false,
    // `forward` follows the pool, so no connection of others may enter it.
    keepalive: false,
  });
  await response.body?.cancel();
  return response.status;
}

/** More than any backend's metrics have. */
const maxMetricsBytes = 4 * 1024 * 1024;

/** @returns the backend's metrics in the Prometheus text format; undefined if it serves none, or too many */
export async function fetchBackendMetrics(
  { baseUrl, apiKey }: ProbedUpstream,
  signal: AbortSignal,
): Promise<string | undefined> {
  const headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  const response = await fetch(`${baseUrl}/metrics`, {
    headers,
    signal,
    redirect: "manual",
    proxy: false,
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
