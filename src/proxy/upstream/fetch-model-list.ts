import { askBackend, type ProbedUpstream } from "./probe.ts";

/** More than any backend's list has. */
const maxListBytes = 4 * 1024 * 1024;

/** @returns the bytes of the backend's list of models; undefined if it serves none, or one that is too long */
export async function fetchModelList(
  upstream: ProbedUpstream,
  signal: AbortSignal,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const response = await askBackend(upstream, "/v1/models", signal);
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > maxListBytes) return undefined;
  }
  return response.ok ? Buffer.concat(chunks) : undefined;
}
