import { expect, test } from "bun:test";
import { startSimulator } from "../support/simulator/simulator.ts";
import { differences, readCounters } from "../soak/tally.ts";
import { logIn } from "../support/admin-client.ts";
import { clientOf } from "../support/client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { sharedPostgres, whyNoPostgres } from "../support/postgres.ts";
import { startProgram } from "../support/program.ts";
import { rounds } from "../support/rounds.ts";
import { createTempFolder } from "../support/temp-folder.ts";
import { shared } from "../support/shared.ts";

const backend = shared(() => startSimulator());

const clients = 8;

/** Sends requests until one fails. Counts only responses whose end it saw. */
async function sendUntilFailure(url: string, key: string, seen: { requests: number; tokens: number }): Promise<void> {
  for (let turn = 0; ; turn++) {
    const stream = turn % 2 === 0;
    try {
      const body = { model: "m", stream, max_tokens: 7, messages: [{ role: "user", content: "Hi" }] };
      const response = await clientOf(url, key).send("/v1/messages", body, { script: "usage=5,7" });
      await response.text();
      if (!response.ok) return;
    } catch {
      return;
    }
    seen.requests++;
    seen.tokens += 7;
  }
}

test("a response whose end a client saw is counted, even if the program is killed again and again under load", async () => {
  using folder = createTempFolder();
  const environment = {
    PROXY_UPSTREAM_URL: backend.url,
    DATA_DIR: folder.path,
    ADMIN_PASSWORD: "password",
    LOG_LEVEL: "error",
  };
  const seen = { requests: 0, tokens: 0 };
  let key = "";
  for (let round = 0; round < rounds; round++) {
    const program = await startProgram(environment);
    if (key === "") ({ key } = await (await logIn(program.adminUrl, "admin", "password")).createKey("test"));
    const before = seen.requests;
    const load = Array.from({ length: clients }, () => sendUntilFailure(program.url, key, seen));
    await pollUntil(() => seen.requests >= before + 20 + round * 3);
    await program.stop("SIGKILL");
    await Promise.all(load);
  }
  const program = await startProgram(environment);
  const admin = await logIn(program.adminUrl, "admin", "password");
  const [listed] = await admin.listKeys();
  const { keys, ...others } = await readCounters(admin);
  await program.stop();
  // What is written in one transaction is there as a whole, or not at all.
  for (const [name, tally] of Object.entries(others)) expect([name, differences(keys, tally)]).toEqual([name, []]);
  expect(seen.requests).toBeGreaterThan(rounds * 20);
  expect(listed?.total_request_count).toBeGreaterThanOrEqual(seen.requests);
  expect(listed?.total_output_tokens).toBeGreaterThanOrEqual(seen.tokens);
  // At most the requests in progress at each kill may have been counted, although the client did not see their end.
  expect(listed?.total_request_count).toBeLessThanOrEqual(seen.requests + rounds * clients);
});

/** Streams whose connection stays open after the event that clients treat as the end. */
const dialects: readonly [path: string, body: object, end: string][] = [
  ["/v1/chat/completions", { messages: [{ role: "user", content: "Hi" }], max_tokens: 3 }, "data: [DONE]\n\n"],
  ["/v1/completions", { prompt: "Hi", max_tokens: 3 }, "data: [DONE]\n\n"],
  ["/v1/messages", { messages: [{ role: "user", content: "Hi" }], max_tokens: 3 }, '"type":"message_stop"}\n\n'],
  ["/v1/responses", { input: "Hi", max_output_tokens: 3 }, "event: response.incomplete\n"],
];

/** Reads up to the terminal event. @returns whether it arrived */
async function readToTerminalEvent(origin: string, key: string, [path, body, end]: (typeof dialects)[number]) {
  const sent = { model: "m", stream: true, stream_options: { include_usage: true }, ...body };
  const response = await clientOf(origin, key).send(path, sent, { script: "usage=5,7; never-end" });
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    if (text.includes(end) && text.endsWith("\n\n")) return true;
  }
  return false;
}

test.each(whyNoPostgres === undefined ? ["SQLite", "PostgreSQL"] : ["SQLite"])(
  "a stream whose terminal event was read is counted, even if the program is killed at that moment (%s)",
  async (engine) => {
    using folder = createTempFolder();
    const environment = {
      PROXY_UPSTREAM_URL: backend.url,
      DATA_DIR: folder.path,
      ADMIN_PASSWORD: "password",
      SECRET_KEY: "0123456789abcdef",
      LOG_LEVEL: "error",
      ...(engine === "PostgreSQL" && { DATABASE_URL: await (await sharedPostgres()).createDatabase() }),
    };
    let key = "";
    let seen = 0;
    for (let round = 0; round < rounds; round++) {
      const program = await startProgram(environment);
      if (key === "") ({ key } = await (await logIn(program.adminUrl, "admin", "password")).createKey("test"));
      const streams = dialects.map((dialect) =>
        readToTerminalEvent(program.url, key, dialect).then(
          (ended) => void (seen += Number(ended)),
          () => {},
        ),
      );
      await (round % 2 === 0 ? Promise.race(streams) : Promise.all(streams));
      await program.stop("SIGKILL");
      await Promise.all(streams);
    }
    const program = await startProgram(environment);
    const [listed] = await (await logIn(program.adminUrl, "admin", "password")).listKeys();
    await program.stop();
    expect(seen).toBeGreaterThanOrEqual(rounds);
    expect(listed?.total_request_count).toBeGreaterThanOrEqual(seen);
    expect(listed?.total_output_tokens).toBeGreaterThanOrEqual(seen * 7);
  },
  rounds * 10_000 + 30_000,
);
