import { createTempFolder } from "../support/temp-folder.ts";
import { findFreePort } from "../support/free-port.ts";
import { readMetric, startBackend, untilReady } from "./backend.ts";
import { describeBackend, type StartedBackend } from "./suite.ts";

/** One and a half minutes on two cores. */
async function start(): Promise<StartedBackend> {
  const folder = createTempFolder();
  const port = findFreePort();
  const model = startBackend("vllm", ["python", "model.py", folder.path]);
  await untilReady(model, () => model.output().includes("saved"));
  await model[Symbol.asyncDispose]();
  const server = ["python", "-m", "vllm.entrypoints.openai.api_server"] as const;
  const options = ["--model", folder.path, "--served-model-name", "tiny", "--dtype", "float32", "--enforce-eager"];
  const tools = ["--enable-auto-tool-choice", "--tool-call-parser", "hermes"];
  const address = ["--host", "127.0.0.1", "--port", String(port)];
  const backend = startBackend("vllm", [...server, ...options, ...tools, ...address]);
  const url = `http://127.0.0.1:${port}`;
  await untilReady(backend, async () => (await fetch(`${url}/health`)).ok);
  return { ...backend, url };
}

describeBackend({
  name: "vllm",
  start,
  generated: async (url) => ({
    input: await readMetric(url, "vllm:prompt_tokens_total"),
    output: await readMetric(url, "vllm:generation_tokens_total"),
  }),
  running: (url) => readMetric(url, "vllm:num_requests_running"),
  toolFields: { tool_choice: { type: "function", function: { name: "weather" } } },
  isContinuous: true,
  normalize: (text) => text.replaceAll(/"(id|created)":("[^"]*"|\d+)/g, ""),
});
