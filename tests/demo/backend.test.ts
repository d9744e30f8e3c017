import Anthropic from "@anthropic-ai/sdk";
import { expect, test } from "bun:test";
import OpenAI from "openai";
import { startDemoBackend } from "../../src/demo/backend.ts";
import { demoModel, demoSmallModel } from "../../src/demo/personas.ts";
import { pollUntil } from "../support/poll-until.ts";
import { rejectionOf } from "../support/rejection.ts";
import { shared } from "../support/shared.ts";

const backend = shared(() => startDemoBackend());

const fast = "tokensPerSecond=1000&firstByteMs=1";
const chat = (simulated: string, fields: object = {}) =>
  fetch(`${backend.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "x-simulate": simulated },
    body: JSON.stringify({ model: demoModel, messages: [], max_tokens: 3, ...fields }),
  });
const streamed = { stream: true, stream_options: { include_usage: true } };

test("responds to a visitor, whatever the header says", async () => {
  for (const simulated of ["", "tokensPerSecond=x&firstByteMs=y&inputTokens=z&fault=no", "%"])
    expect((await chat(simulated)).status).toBe(200);
  const elsewhere = await fetch(`${backend.url}/v1/elsewhere`, { method: "POST", body: "{" });
  expect([elsewhere.status, await elsewhere.text()]).toEqual([404, expect.stringContaining("Not Found")]);
});

test("a fault refuses the request, resets it, or breaks off a stream", async () => {
  expect((await chat(`${fast}&fault=refuse`)).status).toBe(503);
  for (const fault of ["reset", "break"])
    expect(await rejectionOf(chat(`${fast}&fault=${fault}`))).toMatchObject({ code: "ECONNRESET" });
  const { status, body } = await chat("tokensPerSecond=20&fault=break", { ...streamed, max_tokens: 20 });
  expect(status).toBe(200);
  let received = "";
  const reading = body
    ?.pipeThrough(new TextDecoderStream())
    .pipeTo(new WritableStream({ write: (text) => void (received += text) }));
  expect(await rejectionOf(reading ?? Promise.resolve())).toBeInstanceOf(Error);
  expect(received).toStartWith("data: {");
  expect(received).not.toContain("[DONE]");
});

test("its counters include what was sent to a client that left", async () => {
  const generated = async (): Promise<number> => {
    const metrics = await (await fetch(`${backend.url}/metrics`)).text();
    return Number(new RegExp(`generation_tokens_total\\{.*"${demoSmallModel}"\\} (.*)`).exec(metrics)?.[1]);
  };
  expect(await generated()).toBe(0);
  const leaving = new AbortController();
  const { body } = await fetch(`${backend.url}/v1/chat/completions`, {
    method: "POST",
    body: JSON.stringify({ model: demoSmallModel, messages: [], max_tokens: 100_000, stream: true }),
    signal: leaving.signal,
  });
  await body?.getReader().read();
  await pollUntil(async () => (await generated()) > 0);
  leaving.abort();
  await pollUntil(async () => {
    const before = await generated();
    await Bun.sleep(200);
    return (await generated()) === before;
  });
});

test("streams what the SDKs of each API read", async () => {
  const openai = new OpenAI({ baseURL: `${backend.url}/v1`, apiKey: "none", defaultHeaders: { "x-simulate": fast } });
  const anthropic = new Anthropic({ baseURL: backend.url, apiKey: "none", defaultHeaders: { "x-simulate": fast } });
  const messages = [{ role: "user" as const, content: "Hello!" }];
  const start = "A toll gate stands";
  const chunks = openai.chat.completions.stream({ model: demoModel, messages, max_completion_tokens: 9 });
  expect(await chunks.finalContent()).toStartWith(start);
  const message = await anthropic.messages.stream({ model: demoModel, messages, max_tokens: 9 }).finalMessage();
  expect(message).toMatchObject({ content: [{ text: expect.stringContaining(start) }], stop_reason: "max_tokens" });
  const response = openai.responses.stream({ model: demoModel, input: "Hello!", max_output_tokens: 9 });
  expect(await response.finalResponse()).toMatchObject({ status: "incomplete", usage: { output_tokens: 9 } });
  const { data } = await openai.embeddings.create({ model: demoModel, input: ["one", "two"] });
  expect(data.map(({ embedding }) => embedding.length)).toEqual([384, 384]);
});
