import { listModelNames, type ModelNames, resolveModel } from "../rewrite/model-names.ts";

/** Where `opencode auth login URL` looks for its configuration. */
export const openCodePath = "/.well-known/opencode";
/** What it asks for with the key, at each start. */
export const openCodeModels = "/v1/tollgate/opencode";

const provider = "tollgate";
const env = "TOLLGATE_API_KEY";
/** opencode (1.18) runs it and keeps what it prints; it gives it no input of its own. */
const askForKey = `printf 'Tollgate API key: ' >/dev/tty; read -r key </dev/tty; printf '%s' "$key"`;

/** Anybody may read it: it names no model. @param publicUrl the origin of `/v1` */
export const respondToOpenCode = (publicUrl: string): Response =>
  Response.json({
    auth: { command: ["sh", "-c", askForKey], env },
    config: {
      provider: {
        [provider]: {
          npm: "@ai-sdk/openai-compatible",
          name: "Tollgate",
          options: { baseURL: `${publicUrl}/v1`, apiKey: `{env:${env}}` },
        },
      },
    },
    remote_config: { url: publicUrl + openCodeModels, headers: { authorization: `Bearer {env:${env}}` } },
  });

/** The models that a key may use, for the same configuration. */
export function respondWithOpenCodeModels(names: ModelNames, mayUse: (name: string) => boolean): Response {
  const models = listModelNames(names)
    .filter(mayUse)
    .flatMap((name) => {
      const { kind, contextTokens, maxOutputTokens } = resolveModel(name, names).rules;
      const limit = { context: contextTokens, output: maxOutputTokens };
      return kind === "embedding" ? [] : [[name, { name, limit }] as const];
    });
  const headers = { "cache-control": "no-store" };
  return Response.json({ provider: { [provider]: { models: Object.fromEntries(models) } } }, { headers });
}
