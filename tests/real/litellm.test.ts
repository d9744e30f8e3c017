import { findFreePort } from "../support/free-port.ts";
import { startBackend, untilReady } from "./backend.ts";
import { describeBackend, type StartedBackend } from "./suite.ts";

/** `master_key` in litellm/config.yaml. */
const apiKey = "sk-7c0b1f1d6f2f4b0c9e0a5d3e8a1b4c6d";

async function start(): Promise<StartedBackend> {
  const port = findFreePort();
  const address = ["--host", "127.0.0.1", "--port", String(port)];
  const backend = startBackend("litellm", ["litellm", "--config", "config.yaml", ...address]);
  const url = `http://127.0.0.1:${port}`;
  await untilReady(backend, async () => (await fetch(`${url}/health/liveliness`)).ok);
  return { ...backend, url };
}

describeBackend({
  name: "litellm",
  start,
  apiKey,
  // Its mocks are for the other calls.
  unsupported: ["responses, streamed"],
  isContinuous: false,
  // Without usage requested, its completions have zeros in each event; they are its own and tell nothing.
  normalize: (text) =>
    text
      .replaceAll(/"(id|created)":("[^"]*"|\d+)/g, "")
      .replaceAll(',"usage":{"completion_tokens":0,"prompt_tokens":0,"total_tokens":0}', ""),
});
