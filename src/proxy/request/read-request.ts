import { eventLoopPortions } from "../json/read.ts";
import { getEndpoint } from "../rewrite/endpoint.ts";
import { listModelNames } from "../rewrite/model-names.ts";
import type { ClientContext } from "../rewrite/rewrite.ts";
import type { Rewriters, Rewriting } from "../rewrite/current-rewriting.ts";
import { readBody, type ReadBodyDeps, type ReceivedBody } from "./hold-or-stream.ts";
import { isModelAllowed, memberNotAllowed, modelNotFound, requireAllowedModel } from "./model-rule.ts";
import { hasBody, rewriteBody, type RewrittenBody } from "./rewrite-body.ts";
import { classOfBody } from "./request-class.ts";
import type { KeyRules } from "../../domain/keys.ts";
import { hasLimit, tokenLimits } from "../../domain/limits.ts";
import type { RequestChanges, RequestedNames } from "../../domain/requests.ts";

export interface RequestToRead {
  request: Request;
  tracker: TrackedBody;
  /** The URL's pathname. */
  path: string;
  /** Null for a key without limits. */
  rules: KeyRules | null;
  rewriting: Rewriting;
  rewriters: Rewriters;
  /** The backend refuses the options that request usage. */
  refusesOptions: boolean;
  /** Undefined unless rules go by the client. */
  client: ClientContext | undefined;
}

/** What log and metrics get of a body, of one that is refused too. */
interface TrackedBody {
  readonly clientProgram: string | undefined;
  requestClass: string | undefined;
  isReceived: boolean;
  model: RequestedNames | undefined;
  changes: RequestChanges | undefined;
}

export interface ReadRequest {
  received: ReceivedBody;
  rewrittenBody: RewrittenBody;
}

/**
 * Reads a request's body as far as its rules need, and rewrites it for the model that it names.
 * @throws ProxyError if the key may not use that model, or something goes round its rules, or no backend has the model
 */
export async function readRequest(
  { request, tracker, path, rules, rewriting, rewriters, refusesOptions, client }: RequestToRead,
  deps: Omit<ReadBodyDeps, "waitForTurn">,
): Promise<ReadRequest> {
  const { names } = rewriting;
  const allowed = rules?.allowed_models ?? null;
  const { takesJson, refers } = getEndpoint(path);
  const bodyRules = {
    takesJson,
    // Nothing else can be held to the key's limits and models.
    mustBeReadable: rules !== null && (allowed !== null || hasLimit(rules)),
    readsForms: names.catalog.file !== undefined,
    checksForms: allowed !== null,
    mayRefer: refers,
  };
  const received = await readBody(request, bodyRules, { ...deps, waitForTurn: eventLoopPortions.waitForTurn });
  const rewriter = refusesOptions ? rewriters.unasked : rewriters.asking;
  const rewrittenBody = await rewriteBody(path, received, rewriter, client, deps.party);
  const { model, changes, target, notAllowed } = rewrittenBody.rewritten;
  tracker.isReceived = true;
  tracker.requestClass = classOfBody(received.body, tracker.clientProgram) ?? tracker.requestClass;
  tracker.model = model;
  tracker.changes = changes;
  const limitsTokens = rules !== null && hasLimit(rules, tokenLimits);
  const found = (limitsTokens ? notAllowed.tokens : undefined) ?? (allowed === null ? undefined : notAllowed.models);
  if (found !== undefined) throw memberNotAllowed(found);
  if (allowed !== null) {
    const inQuery = new URL(request.url).searchParams.getAll("model");
    requireAllowedModel(allowed, { path, inQuery, model, hasBody: hasBody(received.body) });
  }
  if (model !== undefined && target.candidates.length === 0) {
    const mayUse = (name: string): boolean => allowed === null || isModelAllowed(allowed, name);
    throw modelNotFound(model.asked, listModelNames(names).filter(mayUse));
  }
  return { received, rewrittenBody };
}
