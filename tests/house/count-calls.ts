// A program of its own: prints as JSON which files and functions run in the main thread for one streamed chat completion.
// Storage's Worker thread is not counted: a plugin does not reach it.
import { readFileSync } from "node:fs";
import { relative } from "node:path";
import { repositoryRoot } from "../support/import-table.ts";
import { instrument } from "./functions.ts";

const warmUps = 5;
const measured = 5;

const environment = { PROXY_ALIAS_MODEL: "model", PROXY_FAMILY_MODEL: "model" };
const limits = { max_concurrency: 10, requests_per_minute: 1000, tokens_per_day: 1_000_000 };
const body = {
  model: "another-name",
  max_tokens: 8000,
  temperature: 0.7,
  stream: true,
  messages: [
    { role: "system", content: "You answer in one sentence." },
    { role: "user", content: "Why is the sky blue?" },
  ],
};

/** As `FILE:LINE:NAME`. */
const called = new Set<string>();
Object.assign(globalThis, { countCall: (name: string) => void called.add(name) });

Bun.plugin({
  name: "count-calls",
  setup(build) {
    build.onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) => ({
      contents: instrument(relative(repositoryRoot, path), sourceOf(path), "globalThis.countCall"),
      loader: "ts",
    }));
  },
});

/** Bun 1.4.5 runs no macro in what a plugin loads, so these are called when the program runs. Remove when it does. */
const sourceOf = (path: string): string => readFileSync(path, "utf8").replaceAll(' with { type: "macro" }', "");

// Imported only now, so that the plugin sees what it imports.
const { startTollgateWithKeys } = await import("../support/tollgate-with-keys.ts");

const gate = await startTollgateWithKeys(environment);
const limited = await gate.createKey(limits);
const calls = { withoutLimits: await listCalls(gate.key), withLimits: await listCalls(limited.key) };
process.stdout.write(JSON.stringify(calls));
await gate[Symbol.asyncDispose]();
// The timers of the stopped server would keep the process for the rest of its grace.
process.exit();

/** What runs for each of several requests: a timer that fires meanwhile is not part of one. */
async function listCalls(key: string): Promise<string[]> {
  for (let index = 0; index < warmUps; index++) await listCallsOfOne(key);
  let inEach = await listCallsOfOne(key);
  for (let index = 1; index < measured; index++) inEach = inEach.intersection(await listCallsOfOne(key));
  return [...inEach].toSorted();
}

/** The response ends after its counts are committed, and the log gets its line after that. */
async function listCallsOfOne(key: string): Promise<Set<string>> {
  const entriesBefore = gate.log.length;
  called.clear();
  const response = await gate.post(key, { body });
  if (response.status !== 200) throw new Error(`Status ${response.status}: ${await response.text()}`);
  await response.text();
  await gate.waitForLog((entry) => entry["message"] === "Request ended" && gate.log.indexOf(entry) >= entriesBefore);
  return new Set(called);
}
