import { logIn } from "./admin-client.ts";
import { clientOf } from "./client.ts";
import { type ProgramEnvironment, startProgram } from "./program.ts";
import { connectRaw, type RawClientOptions } from "./raw-client.ts";

export type ProgramWithKey = Awaited<ReturnType<typeof startProgramWithKey>>;

const body = JSON.stringify({
  model: "m",
  stream: true,
  max_tokens: 6,
  messages: [{ role: "user", content: "Hi" }],
});

/** The program in a process of its own, with one key. */
export async function startProgramWithKey(upstreamUrl: string | undefined, environment: ProgramEnvironment = {}) {
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
    /** Sends a streamed chat request with a script for the simulator. */
    async postStream(script: string, options?: RawClientOptions) {
      const client = await connectRaw(program.url, options);
      const headers = { "x-api-key": key, "Content-Type": "application/json", "x-simulate": script };
      client.request("POST", "/v1/chat/completions", headers, body);
      return client;
    },
  };
}
