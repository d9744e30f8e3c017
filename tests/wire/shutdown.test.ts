import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Simulator, startSimulator } from "../../src/simulator/simulator.ts";
import { type ProgramWithKey, startProgramWithKey } from "../support/program-with-key.ts";
import type { ProgramEnvironment } from "../support/program.ts";
import { connectRaw, type RawClient } from "../support/raw-client.ts";
import { unreadBytes } from "../support/unread-bytes.ts";
import { pollUntil } from "../support/poll-until.ts";

let backend: Simulator;
beforeAll(() => {
  backend = startSimulator();
});
afterAll(() => backend.stop());

const start = (environment: ProgramEnvironment = {}): Promise<ProgramWithKey> =>
  startProgramWithKey(backend.url, environment);

async function stream(program: ProgramWithKey, script: string): Promise<RawClient> {
  const client = await program.postStream(script);
  await client.nextEvent();
  return client;
}

const refusesConnections = async (url: string): Promise<boolean> =>
  connectRaw(url).then(
    (client) => {
      client.close();
      return false;
    },
    () => true,
  );

describe.each(["SIGTERM", "SIGINT"] as const)("%s", (signal) => {
  test("lets a running stream finish, refuses new connections, and exits with 0", async () => {
    const running = await start();
    const client = await stream(running, "gap=1500ms@3");
    const idle = await connectRaw(running.url);
    idle.request("GET", "/v1/models", { "x-api-key": running.key });
    await idle.ended();
    const stopped = running.stop(signal);
    await pollUntil(() => refusesConnections(running.url));
    expect(await client.ended()).toBe("complete");
    expect(await client.text()).toEndWith("data: [DONE]\n\n");
    expect(await stopped).toBe(0);
  });

  test("breaks streams that outlast the grace period, and exits with 0", async () => {
    const running = await start({ SHUTDOWN_GRACE: "0.3" });
    backend.clear();
    const client = await stream(running, "gap=forever@2");
    const stopped = running.stop(signal);
    expect(await client.ended()).not.toBe("complete");
    expect(await client.text()).toContain('"code":"shutting_down"');
    expect(await stopped).toBe(0);
    expect((await (await backend.nextRequest()).ended).how).toBe("aborted");
  });

  test("sent twice ends the program immediately", async () => {
    const running = await start({ SHUTDOWN_GRACE: "600" });
    const client = await stream(running, "gap=forever@2");
    void running.stop(signal);
    await pollUntil(() => refusesConnections(running.url));
    expect(await running.stop(signal)).toBe(1);
    expect(await client.ended()).not.toBe("complete");
  });

  test("sent by the terminal and repeated by npm counts as one signal", async () => {
    const running = await start({ SHUTDOWN_GRACE: "600", npm_lifecycle_event: "demo" });
    const client = await stream(running, "gap=1500ms@3");
    void running.stop(signal);
    await pollUntil(() => refusesConnections(running.url));
    expect(await running.stop(signal)).toBe(0);
    expect(await client.ended()).toBe("complete");
  });
});

describe("an idle program", () => {
  test("stops promptly, even if a client keeps its connection open", async () => {
    const running = await start({ SHUTDOWN_GRACE: "600" });
    const client = await connectRaw(running.url);
    client.request("GET", "/v1/models", { "x-api-key": running.key });
    await client.ended();
    expect(await running.stop()).toBe(0);
  });
});

describe("SIGTERM while", () => {
  test("a request waits for its response lets the response arrive and counts it", async () => {
    const program = await start({ LOG_LEVEL: "info" });
    backend.clear();
    const client = await connectRaw(program.url);
    const headers = {
      "x-api-key": program.key,
      "Content-Type": "application/json",
      "x-simulate": "slow-head=700ms; usage=3,4",
    };
    const body = { model: "m", messages: [{ role: "user", content: "Hi" }] };
    client.request("POST", "/v1/chat/completions", headers, JSON.stringify(body));
    await backend.nextRequest();
    const stopped = program.stop();
    expect((await client.head()).status).toBe(200);
    expect(await client.ended()).toBe("complete");
    client.close();
    expect(await stopped).toBe(0);
    expect(program.stdout()).toContain('"outputTokens":4');
  });

  test("a client is sending its body lets it finish and get its response", async () => {
    const program = await start();
    const client = await connectRaw(program.url);
    backend.clear();
    const head = `PUT /v1/files HTTP/1.1\r\nHost: h\r\nx-api-key: ${program.key}\r\nContent-Type: text/plain\r\nContent-Length: 6\r\n\r\n`;
    client.send(`${head}abc`);
    await backend.waitFor(({ type }) => type === "head");
    const stopped = program.stop();
    await pollUntil(() => refusesConnections(program.url));
    client.send("def");
    expect(await client.text()).toBe("abcdef");
    client.close();
    expect(await stopped).toBe(0);
  });

  test("a client has sent half a head waits no longer than the grace period", async () => {
    const program = await start({ SHUTDOWN_GRACE: "0.5" });
    const client = await connectRaw(program.url);
    client.send("GET /v1/models HTTP/1.1\r\nHost: h\r\nX-Half: ");
    await pollUntil(() => unreadBytes(Number(new URL(program.url).port)) === 0);
    const begun = performance.now();
    expect(await program.stop()).toBe(0);
    expect(performance.now() - begun).toBeLessThan(10_000);
    await client.closed();
  });
});
