import { canonical } from "../rewrite/endpoint.ts";

/** Which tokens of a response count. The request itself always does. */
export type CountingRule = "all" | "once per response id" | "none";

/**
 * Tokens are counted where they are spent: in responses to POST. Backends report those of a stored response again whenever
 * it is retrieved or cancelled, and those of a batch in files and in the batch itself.
 * @param path the URL's pathname
 */
export function countingRuleOf(method: string, path: string): CountingRule {
  const plain = canonical(path);
  if (isBelow(plain, "/v1/responses")) return method === "POST" || method === "GET" ? "once per response id" : "none";
  return method === "POST" && !isBelow(plain, "/v1/files") && !isBelow(plain, "/v1/batches") ? "all" : "none";
}

/** Whether responses report cached input beside the input, and not as part of it. */
export const countsCacheBesideInput = (path: string): boolean => isBelow(canonical(path), "/v1/messages");

const isBelow = (path: string, folder: string): boolean => path === folder || path.startsWith(`${folder}/`);
