import { ProxyError } from "../errors.ts";
import { modelIdIn } from "../rewrite/endpoint.ts";
import { type FoundMember, type MemberRow, memberRows } from "../rewrite/members-not-allowed.ts";

/** Names in lower case; one that ends in `*` is a prefix. */
type AllowedModels = readonly string[];

export function isModelAllowed(allowed: AllowedModels, name: string): boolean {
  const lower = name.toLowerCase();
  return allowed.some((one) => (one.endsWith("*") ? lower.startsWith(one.slice(0, -1)) : lower === one));
}

/** What is known of the model that a request asks for. */
interface RequestedModel {
  /** The URL's pathname. */
  path: string;
  /** The models that the URL's query names: LiteLLM prefers them to the body's. */
  inQuery: readonly string[];
  /** The request has a body, read or not. */
  hasBody: boolean;
  /** Undefined if the body names none, or could not be read. */
  model: { asked: string; name: string } | undefined;
}

const notOneModel = {
  message: "With this API key, the body must name exactly one model; GET /v1/models lists those that the key may use.",
};

/**
 * Strict, because the backend chooses a model of its own where none is named: a body must name one, and its name as asked for
 * or the model's must be allowed.
 * @throws ProxyError `model_not_allowed`
 */
export function requireAllowedModel(allowed: AllowedModels, requested: RequestedModel): void {
  const { path, inQuery, hasBody, model } = requested;
  const isAllowed = (name: string): boolean => isModelAllowed(allowed, name);
  const named = modelIdIn(path);
  if (named !== undefined && !isAllowed(named)) throw new ProxyError("model_not_allowed");
  if (!inQuery.every(isAllowed)) throw new ProxyError("model_not_allowed");
  if (!hasBody) return;
  if (model === undefined) throw new ProxyError("model_not_allowed", notOneModel);
  if (!isAllowed(model.asked) && !isAllowed(model.name)) throw new ProxyError("model_not_allowed");
}

/** @param found goes round a rule of the key */
export function memberNotAllowed({ name, place = "" }: FoundMember): ProxyError {
  const { rule, forms, does }: MemberRow = memberRows[name];
  const [param, has] = [place + name, rule === "tokens" ? "limits of tokens" : "models that it may use"];
  const message = `This API key has ${has}: '${param}' is not allowed${forms && ` ${forms}`}, since ${does}.`;
  return new ProxyError("member_not_allowed", { message, members: { param } });
}
