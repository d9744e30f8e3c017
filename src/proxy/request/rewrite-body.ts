import { ProxyError } from "../errors.ts";
import { estimateInput, type RewriteRequest, type Rewritten } from "../rewrite/rewrite.ts";
import { noUsageAdded } from "../rewrite/stream-options.ts";
import { outgoingBodyOf } from "../upstream/outgoing-body.ts";
import type { UpstreamRequest } from "../upstream/forward.ts";
import { tokensToReserve } from "./admit.ts";
import type { ReadBody } from "./body.ts";

/** How many tokens to reserve for a request. */
export async function expectTokens(body: ReadBody, maxOutput: number | undefined): Promise<number> {
  const input = body instanceof Uint8Array ? await estimateInput(body) : undefined;
  return tokensToReserve({ hasBody: hasBody(body), input, maxOutput });
}

export interface RewrittenBody extends Pick<
  Rewritten,
  "stream" | "usageAdded" | "model" | "changes" | "maxTokens" | "hasSeveralModels"
> {
  body: UpstreamRequest["body"];
  /** Undefined for a body that is not held: its length is the client's. */
  length: number | undefined;
}

/** Of a body that is not held. */
const notRead = {
  length: undefined,
  stream: false,
  usageAdded: noUsageAdded,
  model: undefined,
  maxTokens: undefined,
  hasSeveralModels: false,
};

export const hasBody = (body: ReadBody): boolean => body !== null && (!(body instanceof Uint8Array) || body.length > 0);

/** @throws ProxyError if the rules could not read in it what the backend may */
export async function rewriteBody(path: string, body: ReadBody, rewrite: RewriteRequest): Promise<RewrittenBody> {
  if (!(body instanceof Uint8Array)) {
    return { ...notRead, body };
  }
  const rewritten = await rewrite(path, body);
  if ("refused" in rewritten) throw new ProxyError("invalid_json");
  const { pieces = [body], ...rest } = rewritten;
  return { ...outgoingBodyOf(pieces), ...rest };
}
