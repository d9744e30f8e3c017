import { ProxyError } from "../errors.ts";
import { estimateInput, type RewriteRequest, type Rewritten, untouched } from "../rewrite/rewrite.ts";
import { outgoingBodyOf } from "../upstream/outgoing-body.ts";
import type { UpstreamRequest } from "../upstream/forward.ts";
import { tokensToReserve } from "./admit.ts";
import type { ReadBody } from "./body.ts";

/** How many tokens to reserve for a request. @returns a promise for a long body */
export function expectTokens(body: ReadBody, maxOutput: number | undefined): number | Promise<number> {
  const expected = (input?: number): number => tokensToReserve({ hasBody: hasBody(body), input, maxOutput });
  const input = body instanceof Uint8Array ? estimateInput(body) : undefined;
  return input instanceof Promise ? input.then(expected) : expected(input);
}

export interface RewrittenBody {
  outgoing: {
    body: UpstreamRequest["body"];
    /** Undefined for a body that is not held: its length is the client's. */
    length: number | undefined;
  };
  rewritten: Rewritten;
}

export const hasBody = (body: ReadBody): boolean => body !== null && (!(body instanceof Uint8Array) || body.length > 0);

/** @throws ProxyError if the rules could not read in it what the backend may */
export async function rewriteBody(path: string, body: ReadBody, rewrite: RewriteRequest): Promise<RewrittenBody> {
  if (!(body instanceof Uint8Array)) return { outgoing: { body, length: undefined }, rewritten: untouched };
  const rewritten = await rewrite(path, body);
  if ("refused" in rewritten) throw new ProxyError("invalid_json");
  return { outgoing: outgoingBodyOf(rewritten.pieces ?? [body]), rewritten };
}
