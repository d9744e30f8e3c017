import type { Static } from "@sinclair/typebox";
import { type ElysiaCustomStatusResponse, status } from "elysia";
import type { Change } from "../../domain/changes.ts";
import type { ApiToken } from "../../store/accounts/contract.ts";
import { msPerMinute } from "../../time/seoul.ts";
import type { JsonObject } from "../http/body.ts";
import { bodyParser, cleanText, refuseUnknownFields } from "../http/body-schema.ts";
import { ApiError } from "../http/errors.ts";
import * as schema from "../http/schemas.ts";
import { type ChangeContext, type JsonContext, type TokenDeps, tokenPrefix } from "./auth.ts";
import { type newTokenBody, type tokenBody, tokenRequest } from "./contract.ts";
import { randomHex, sha256Hex } from "./secrets.ts";

type TokenBody = Static<typeof tokenBody>;
type CreatedToken = ElysiaCustomStatusResponse<201, Static<typeof newTokenBody>>;

const headLength = tokenPrefix.length + 4;
const lifetimeMs = 90 * 24 * 60 * msPerMinute;

const parseRequest = bodyParser(tokenRequest);

/** Creates the token that a body asks for. @throws ApiError 400 */
export async function issueToken(
  json: JsonObject | ApiError,
  { store, clock, log }: TokenDeps,
  by: Change,
): Promise<ApiToken & { token: string }> {
  const body = parseRequest(json);
  refuseUnknownFields(body, tokenRequest);
  const { role, expires_at: expiresAt } = body;
  const token = tokenPrefix + randomHex(20);
  const createdAt = clock();
  const row = {
    hash: sha256Hex(token),
    head: token.slice(0, headLength),
    name: cleanText(body.name),
    role,
    createdAt,
    expiresAt: expiresAt === undefined ? createdAt + lifetimeMs : expiresAt === null ? null : Date.parse(expiresAt),
  };
  const created = await store.tokens.create(row, by);
  log.info("API token created", { by: by.actor, address: by.address, head: row.head, name: row.name, role });
  return { ...created, token };
}

export const listTokens =
  ({ store }: Pick<TokenDeps, "store">) =>
  async (): Promise<TokenBody[]> =>
    (await store.tokens.list()).map(schema.apiBody);

export const createToken =
  (deps: TokenDeps) =>
  async ({ json, by }: JsonContext): Promise<CreatedToken> =>
    status(201, schema.apiBody(await issueToken(json, deps, by)));

export const deleteToken =
  ({ store, log }: TokenDeps) =>
  async ({ params: { id }, actor, by }: ChangeContext & { params: { id: string } }): Promise<schema.OkBody> => {
    const isId = /^[1-9]\d{0,14}$/.test(id);
    if (!isId || !(await store.tokens.delete(Number(id), by))) throw new ApiError(404, "Token not found");
    log.info("API token deleted", { ...actor, id: Number(id) });
    return { ok: true };
  };
