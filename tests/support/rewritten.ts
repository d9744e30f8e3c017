import type { RewriteRequest, Rewritten } from "../../src/proxy/rewrite/rewrite.ts";
import { rewriterOf, type RewriteSettings } from "./rewrite-rules.ts";

/** A rewritten body as text, for tests of short bodies that are not refused. */
export interface RewrittenText extends Pick<Rewritten, "stream" | "usageAdded"> {
  body: string | undefined;
}

export const rewriteText = (path: string, body: string, rules: RewriteSettings): RewrittenText =>
  textOf(rewriterOf(rules)(path, Buffer.from(body)));

export function textOf(rewritten: ReturnType<RewriteRequest>): RewrittenText {
  if (rewritten instanceof Promise) throw new Error("The body is too long to be rewritten at once");
  if ("refused" in rewritten) throw new Error(`Refused: ${rewritten.refused}`);
  const { pieces, stream, usageAdded } = rewritten;
  return { stream, usageAdded, body: pieces === undefined ? undefined : Buffer.concat(pieces).toString() };
}
