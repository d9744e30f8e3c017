import { type Simulator, startSimulator } from "./simulator/simulator.ts";
import type { Environment } from "../../src/config/config.ts";
import type { ListedKey } from "./admin-client.ts";
import type { RawClient } from "./raw-client.ts";
import { startTollgate, type Tollgate, type TollgateOptions } from "./tollgate.ts";

export interface LimitedKey extends ListedKey {
  refused_today: number;
  limit_states: Readonly<Record<string, object>>;
}

/** A server before a simulated backend, for keys with limits and rules. */
export interface TollgateWithKeys extends Tollgate {
  backend: Simulator;
  createKey(fields: object): Promise<LimitedKey>;
  /** The key as the admin API lists it. */
  getKey(id: number): Promise<LimitedKey>;
  /** Posts a chat request, unless it is given another body, with a script for the simulator. */
  post(key: string, request?: { body?: object; script?: string }): Promise<Response>;
  postRaw(key: string, script: string, body: object): Promise<RawClient>;
}

export const chat = { model: "m", max_tokens: 8, messages: [{ role: "user", content: "Hi" }] };

export async function startTollgateWithKeys(
  environment: Environment = {},
  options: TollgateOptions = {},
): Promise<TollgateWithKeys> {
  const backend = startSimulator();
  const gate = await startTollgate({ PROXY_UPSTREAM_URL: backend.url, ...environment }, options);
  const { admin, send, sendRaw } = gate;
  const path = "/v1/chat/completions";
  let names = 0;
  return {
    ...gate,
    backend,
    createKey(fields) {
      names += 1;
      return admin.createKey(`limited ${names}`, fields) as Promise<LimitedKey>;
    },
    async getKey(id) {
      const keys = (await admin.listKeys()) as LimitedKey[];
      const found = keys.find((key) => key.id === id);
      if (found === undefined) throw new Error("The key no longer exists");
      return found;
    },
    post: (key, { body = chat, script = "" } = {}) => send(path, body, { key, script }),
    postRaw: (key, script, body) => sendRaw(path, body, { key, script }),
    async [Symbol.asyncDispose]() {
      await gate[Symbol.asyncDispose]();
      backend.stop();
    },
  };
}

/** The status and the error of a refusal. */
export const errorOf = async (response: Response): Promise<Record<string, unknown>> => ({
  status: response.status,
  ...((await response.json()) as { error: Record<string, unknown> }).error,
});
