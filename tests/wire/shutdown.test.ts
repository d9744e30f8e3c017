import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { startSimulator } from "../support/simulator/simulator.ts";
import { type ProgramWithKey, startProgramWithKey } from "../support/program-with-key.ts";
import type { ProgramEnvironment } from "../support/program.ts";
import { connectRaw, type RawClient } from "../support/raw-client.ts";
import { unreadBytes } from "../support/unread-bytes.ts";
import { pollUntil } from "../support/poll-until.ts";
import { createTempFolder } from "../support/temp-folder.ts";
import { shared } from "../support/shared.ts";

const backend = shared(() => startSimulator());

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
    const idle = await running.sendRaw("/v1/models");
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

/** The sums over all keys in the database of a program that has ended. */
function sumsIn(dataDir: string): unknown {
  using database = new Database(`${dataDir}/tollgate.db`, { readonly: true });
  const columns = ["request_count", "input_tokens", "output_tokens"].map((name) => `sum(${name}) AS ${name}`);
  return database.query(`SELECT ${columns.join()} FROM keys`).get();
}

const requestEnds = (program: ProgramWithKey): Record<string, unknown>[] =>
  program
    .stdout()
    .split("\n")
    .filter((line) => line.includes("Request ended"))
    .map((line) => JSON.parse(line));

describe.each(["1", "2"])("what the grace cuts, with PROCESSES=%s,", (processes) => {
  test("counts with the usage seen, and the log calls it shutdown", async () => {
    using folder = createTempFolder();
    const running = await start({
      DATA_DIR: folder.path,
      SHUTDOWN_GRACE: "0.3",
      LOG_LEVEL: "info",
      PROCESSES: processes,
      SECRET_KEY: "0123456789abcdef",
    });
    const streams = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const body = { model: "m", stream: true, max_tokens: 9, messages: [{ role: "user", content: "Hi" }] };
        const client = await running.sendRaw("/v1/messages", body, { script: "usage=500,50; gap=forever@5" });
        await client.bodyContaining("content_block_delta");
        return client;
      }),
    );
    const stopped = running.stop();
    for (const client of streams) expect(await client.ended()).not.toBe("complete");
    expect(await stopped).toBe(0);
    expect(sumsIn(folder.path)).toEqual({ request_count: 20, input_tokens: 500 * 20, output_tokens: 0 });
    // Its last lines may be read after its exit.
    await pollUntil(() => requestEnds(running).length === 20);
    const ends = requestEnds(running);
    for (const end of ends) {
      expect(end).toMatchObject({ outcome: "shutdown", code: "shutting_down", status: 200, inputTokens: 500 });
    }
  });

  test("before its first byte is an error, and does not count", async () => {
    using folder = createTempFolder();
    const running = await start({
      DATA_DIR: folder.path,
      SHUTDOWN_GRACE: "0.3",
      LOG_LEVEL: "info",
      PROCESSES: processes,
      SECRET_KEY: "0123456789abcdef",
    });
    backend.clear();
    const client = await running.postStream("gap=forever@0");
    await backend.nextRequest();
    expect(await running.stop()).toBe(0);
    expect((await client.head()).status).toBe(503);
    expect(await client.text()).toContain('"code":"shutting_down"');
    expect(sumsIn(folder.path)).toEqual({ request_count: 0, input_tokens: 0, output_tokens: 0 });
    await pollUntil(() => requestEnds(running).length > 0);
    expect(requestEnds(running)).toMatchObject([{ outcome: "shutdown", code: "shutting_down", status: 503 }]);
  });
});

// They wait, and each has a program of its own.
describe.concurrent.each(["1", "2"])(
  "SIGTERM while another program locks the database, with PROCESSES=%s,",
  (processes) => {
    /** A program with a count that it cannot write. */
    async function startLocked(dataDir: string, grace: string) {
      const running = await start({
        DATA_DIR: dataDir,
        SHUTDOWN_GRACE: grace,
        PROCESSES: processes,
        SECRET_KEY: "0123456789abcdef",
      });
      const lock = new Database(`${dataDir}/tollgate.db`);
      // Each process writes at its start.
      lock.run("PRAGMA busy_timeout = 10000");
      lock.run("BEGIN IMMEDIATE");
      const client = await running.postStream("usage=3,4");
      expect(await client.ended()).toBe("complete");
      return { running, lock };
    }

    test("waits for the database as long as the grace, and writes the counts", async () => {
      using folder = createTempFolder();
      const { running, lock } = await startLocked(folder.path, "20");
      const stopped = running.stop();
      // The lock plays a program that goes on for a while.
      await Bun.sleep(6500);
      lock.run("ROLLBACK");
      lock.close();
      expect(await stopped).toBe(0);
      expect(sumsIn(folder.path)).toMatchObject({ request_count: 1 });
    });

    test("logs the counts that are lost, and exits with 1", async () => {
      using folder = createTempFolder();
      const { running, lock } = await startLocked(folder.path, "0.1");
      expect(await running.stop()).toBe(1);
      // Its last lines may be read after its exit.
      await pollUntil(() => running.stdout().includes("buffered usage is lost"));
      lock.close();
      expect(sumsIn(folder.path)).toMatchObject({ request_count: 0 });
    });
  },
);

describe("an idle program", () => {
  test("stops promptly, even if a client keeps its connection open", async () => {
    const running = await start({ SHUTDOWN_GRACE: "600" });
    const client = await running.sendRaw("/v1/models");
    await client.ended();
    expect(await running.stop()).toBe(0);
  });
});

describe("SIGTERM while", () => {
  test("a stream runs refuses what comes on a connection that is open", async () => {
    const program = await start();
    const client = await stream(program, "gap=1500ms@3");
    const kept = await connectRaw(program.url);
    // Begun, so that the connection is not idle.
    kept.send(`GET /v1/models HTTP/1.1\r\nHost: h\r\nx-api-key: ${program.key}\r\n`);
    await pollUntil(() => unreadBytes(Number(new URL(program.url).port)) === 0);
    backend.clear();
    const stopped = program.stop();
    await pollUntil(() => refusesConnections(program.url));
    kept.send("\r\n");
    const head = await kept.head();
    expect([head.status, head.header("retry-after")]).toEqual([503, "1"]);
    expect(await kept.text()).toContain('"code":"shutting_down"');
    expect(backend.requests()).toEqual([]);
    kept.close();
    expect(await client.ended()).toBe("complete");
    expect(await stopped).toBe(0);
  });

  test("a request waits for its response lets the response arrive and counts it", async () => {
    const program = await start({ LOG_LEVEL: "info" });
    backend.clear();
    const body = { model: "m", messages: [{ role: "user", content: "Hi" }] };
    const client = await program.sendRaw("/v1/chat/completions", body, { script: "slow-head=700ms; usage=3,4" });
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
