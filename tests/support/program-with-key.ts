import { type AdminClient, logIn } from "./admin-client.ts";
import { type Client, clientOf } from "./client.ts";
import { type Program, type ProgramEnvironment, startProgram } from "./program.ts";
import { connectRaw, type RawClient, type RawClientOptions } from "./raw-client.ts";

/** The program in a process of its own, with one key. */
export interface ProgramWithKey extends Program, Client {
  admin: AdminClient;
  key: string;
  /** Sends a streamed chat request with a script for the simulator. */
  postStream(script: string, options?: RawClientOptions): Promise<RawClient>;
}

const body = JSON.stringify({
  model: "m",
  stream: true,
  max_tokens: 6,
  messages: [{ role: "user", content: "Hi" }],
});

export async function startProgramWithKey(
  upstreamUrl: string | undefined,
  environment: ProgramEnvironment = {},
): Promise<ProgramWithKey> {
  const program = await startProgram({
    ...(upstreamUrl !== undefined && { PROXY_UPSTREAM_URL: upstreamUrl }),
    ADMIN_PASSWORD: "password",
    LOG_LEVEL: "error",
    ...environment,
  });
  const admin = await logIn(program.adminUrl, "admin", "password");
  const { key } = await admin.createKey("test");
  return {
    ...program,
    ...clientOf(program.url, key),
    admin,
    key,
    async postStream(script, options) {
      const client = await connectRaw(program.url, options);
      const headers = { "x-api-key": key, "Content-Type": "application/json", "x-simulate": script };
      client.request("POST", "/v1/chat/completions", headers, body);
      return client;
    },
  };
}
