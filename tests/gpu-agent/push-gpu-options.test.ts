import { expect, test } from "bun:test";
import { readPushGpuOptions, UsageError } from "../../src/gpu-agent/push-gpu-options.ts";

const key = "3f2a90d1c5e84b7f9c1b";
const files: Record<string, string> = { "/etc/tollgate.key": `${key}\n`, "/etc/empty": "\n" };

function readFile(file: string): string {
  const text = files[file];
  if (text === undefined) throw new Error("ENOENT");
  return text;
}

const read = (line: string, env = {}) => readPushGpuOptions(line.split(" ").filter(Boolean), env, readFile);

function wrong(line: string, env = {}): string {
  try {
    read(line, env);
  } catch (error) {
    if (error instanceof UsageError) return error.message;
  }
  throw new Error("was not refused");
}

test("an address and a key are enough", () => {
  expect(read(`--url http://gate:8080 --key ${key}`)).toEqual({
    help: false,
    script: false,
    once: false,
    intervalMs: 1000,
    gpuIdOffset: 0,
    server: { url: "http://gate:8080/api/gpu-stats", key },
  });
});

test.each([
  ["http://gate:8080/", "http://gate:8080/api/gpu-stats"],
  ["https://example.com/gate//", "https://example.com/gate/api/gpu-stats"],
  ["https://example.com/api/gpu-stats", "https://example.com/api/gpu-stats"],
])("the address %s means %s", (url, endpoint) => {
  expect(read(`--url ${url} --key ${key}`).server?.url).toBe(endpoint);
});

test("the key may come from a file or the environment, and a flag wins", () => {
  const url = "--url http://gate";
  expect(read(`${url} --key-file /etc/tollgate.key`).server?.key).toBe(key);
  expect(read(url, { TOLLGATE_KEY: key }).server?.key).toBe(key);
  expect(read(`${url} --key-file /etc/tollgate.key`, { TOLLGATE_KEY: "other" }).server?.key).toBe(key);
  expect(read("", { TOLLGATE_KEY: key, TOLLGATE_URL: "http://gate" }).server?.url).toBe("http://gate/api/gpu-stats");
});

test("what only prints needs neither address nor key", () => {
  for (const flag of ["--help", "-h", "--script", "--dry-run"]) expect(read(flag).server).toBeUndefined();
});

test("interval and offset are read", () => {
  expect(read("--dry-run --once --interval 0.25 --gpu-id-offset 64")).toMatchObject({
    once: true,
    intervalMs: 250,
    gpuIdOffset: 64,
  });
});

test.each([
  ["--dry-run --interval 0", "--interval"],
  ["--dry-run --interval 1s", "--interval"],
  ["--dry-run --interval 3601", "--interval"],
  ["--dry-run --gpu-id-offset 256", "--gpu-id-offset"],
  ["--dry-run --gpu-id-offset 1.5", "--gpu-id-offset"],
  [`--key ${key}`, "--url is missing"],
  [`--url gate:8080 --key ${key}`, "--url is not allowed"],
  [`--url ftp://gate --key ${key}`, "--url is not allowed"],
  [`--url http://user:secret@gate --key ${key}`, "--url is not allowed"],
  ["--url http://gate", "the key is missing"],
  ["--url http://gate --key-file /etc/empty", "the key is missing"],
  ["--url http://gate --key-file /none", '--key-file: "/none" cannot be read'],
  [`--url http://gate --key ${key} --key-file /etc/tollgate.key`, "not both"],
  ["--url http://gate --key schlüssel", "visible ASCII"],
  ["--frequency 2", "--frequency"],
  ["--url", "--url"],
  [key, "unexpected argument"],
])("%p is wrong usage, told in one line without a secret", (line, words) => {
  const message = wrong(line);
  expect(message).toContain(words);
  expect(message).not.toContain("\n");
  for (const secret of [key, "secret", "schlüssel"]) expect(message).not.toContain(secret);
});
