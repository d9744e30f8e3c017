import { startSimulator } from "./simulator/simulator.ts";
import type { Environment } from "../../src/config/config.ts";
import type { ListedKey } from "./admin-client.ts";
import { startTollgate, type TollgateOptions } from "./tollgate.ts";

export interface LimitedKey extends ListedKey {
  refused_today: number;
  limit_states: Readonly<Record<string, object>>;
}

export type TollgateWithKeys = Awaited<ReturnType<typeof startTollgateWithKeys>>;

export const chat = { model: "m", max_tokens: 8, messages: [{ role: "user", content: "Hi" }] };

/** A server before a simulated backend, for keys with limits and rules. */
export async function startTollgateWithKeys(environment: Environment = {}, options: TollgateOptions = {}) {
  const backend = startSimulator();
  const gate = await startTollgate({ PROXY_UPSTREAM_URL: backend.url, ...environment }, options);
  const { admin, send, sendRaw } = gate;
  const path = "/v1/chat/completions";
  let names = 0;
  return {
    ...gate,
    backend,
    createKey(fields: object) {
      names += 1;
      return admin.createKey(`limited ${names}`, fields) as Promise<LimitedKey>;
    },
    /** The key as the admin API lists it. */
    async getKey(id: number): Promise<LimitedKey> {
      const keys = (await admin.listKeys()) as LimitedKey[];
      const found = keys.find((key) => key.id === id);
      if (found === undefined) throw new Error("The key no longer exists");
      return found;
    },
    /** Posts a chat request, unless it is given another body, with a script for the simulator. */
    post: (key: string, { body = chat, script = "" }: { body?: object; script?: string } = {}) =>
      send(path, body, { key, script }),
    postRaw: (key: string, script: string, body: object) => sendRaw(path, body, { key, script }),
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
