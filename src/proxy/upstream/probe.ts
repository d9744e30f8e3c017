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
