import type { ConsoleUnderTest } from "./console-under-test.ts";
import { startConsole } from "./console-under-test.ts";
import { pollUntil } from "../../support/poll-until.ts";

export const trafficModel = "traffic-model";

export interface TrafficConsole extends AsyncDisposable {
  console: ConsoleUnderTest;
  key: { id: number; key: string; name: string };
  /** Sends a chat request and reads the response. @param script see `tests/support/simulator/script.ts` */
  chat(
    fields?: Record<string, unknown>,
    script?: string,
    key?: string,
    headers?: Record<string, string>,
  ): Promise<Response>;
}

/** A console whose program serves requests of a key. */
export async function startTrafficConsole(
  environment: Record<string, string> = {},
  keyName = "caller",
): Promise<TrafficConsole> {
  const console = await startConsole(undefined, { PROXY_ALIAS_MODEL: trafficModel, ...environment });
  const key = await console.admin.createKey(keyName);
  return {
    console,
    key,
    async chat(fields = {}, script = "tokens=5", secret = key.key, headers = {}) {
      const response = await fetch(`${console.program.url}/v1/chat/completions`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${secret}`,
          "content-type": "application/json",
          "user-agent": "test-client/1",
          "x-simulate": script,
          ...headers,
        },
        body: JSON.stringify({ model: "claude-asked", messages: [{ role: "user", content: "Hello" }], ...fields }),
      });
      await response.text().catch(() => {});
      return response;
    },
    [Symbol.asyncDispose]: console[Symbol.asyncDispose],
  };
}

/** Waits until the sums by minute hold at least `count` requests: they are written every few seconds. */
export async function waitForSums({ console }: TrafficConsole, count: number): Promise<void> {
  for (;;) {
    const { points } = await console.admin.expectOk<{ points: { request_count: number }[] }>("GET", "/api/failures");
    if (points.reduce((sum, point) => sum + point.request_count, 0) >= count) return;
    await Bun.sleep(50);
  }
}

/** Waits until the API lists at least `count` requests: they are written a moment after they ended. */
export async function waitForLog({ console }: TrafficConsole, count: number, filter = ""): Promise<void> {
  await pollUntil(async () => (await console.admin.listRequests(`?limit=200${filter}`)).length >= count);
}

/** Waits until a request of the key runs. */
export async function waitForRunning({ console }: TrafficConsole, keyId: number): Promise<void> {
  await pollUntil(async () => (await console.admin.listRunning()).some(({ key_id }) => key_id === keyId));
}
