import { expect, test } from "bun:test";
import { CommandError } from "../../src/commands/command.ts";
import { readPushGpuOptions } from "../../src/commands/push-gpu-options.ts";

const key = "3f2a90d1c5e84b7f9c1b";
const files: Record<string, string> = { "/etc/tollgate.key": `${key}\n`, "/etc/empty": "\n" };

function readFile(file: string): string {
  const text = files[file];
  if (text === undefined) throw new Error("ENOENT");
  return text;
}

const read = (line: string, env = {}, hostName = "gpu-01") =>
  readPushGpuOptions(line.split(" ").filter(Boolean), { env, readFile, hostName });

const wrong = (line: string, env = {}): string => refusal(() => void read(line, env));

function refusal(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    if (error instanceof CommandError) return error.message;
  }
  throw new Error("was not refused");
}

test.each([
  ["http://gate:8080/", "http://gate:8080/api/gpu-stats"],
  ["https://example.com/gate//", "https://example.com/gate/api/gpu-stats"],
  ["https://example.com/api/gpu-stats", "https://example.com/api/gpu-stats"],
])("the address %s gives the endpoint %s", (url, endpoint) => {
  expect(read(`--url ${url} --key ${key}`).target?.url).toBe(endpoint);
});

test("reads the key from a file or the environment; an option wins", () => {
  const url = "--url http://gate";
  expect(read(`${url} --key-file /etc/tollgate.key`).target?.key).toBe(key);
  expect(read(url, { TOLLGATE_KEY: key }).target?.key).toBe(key);
  expect(read(`${url} --key-file /etc/tollgate.key`, { TOLLGATE_KEY: "other" }).target?.key).toBe(key);
  expect(read("", { TOLLGATE_KEY: key, TOLLGATE_URL: "http://gate" }).target?.url).toBe("http://gate/api/gpu-stats");
});

test("where samples are only printed neither address nor key is required", () => {
  expect(read("--dry-run").target).toBeUndefined();
});

test("sends the host's own name, cut to what the server takes, unless --host names it", () => {
  expect(read("--dry-run").host).toBe("gpu-01");
  expect(read("--dry-run --host rack-7").host).toBe("rack-7");
  expect(read("--dry-run", {}, "x".repeat(200)).host).toBe("x".repeat(64));
  expect(read("--dry-run", {}, " ").host).toBeUndefined();
});

test.each([
  ["--dry-run --host=", "--host: its value is not allowed; use 1 to 64 characters"],
  [`--dry-run --host ${"x".repeat(65)}`, "--host: its value is not allowed; use 1 to 64 characters"],
  ["--url http://gate --key-file /etc/empty", "API key: missing"],
  ["--url http://gate --key-file /none", '--key-file: cannot read "/none"'],
  [`--url http://gate --key ${key} --key-file /etc/tollgate.key`, "--key: not allowed together with --key-file"],
  ["--frequency 2", "push-gpu takes only the options --url, --key,"],
  ["--url", "--url"],
  [key, "push-gpu takes only the options --url, --key,"],
])("%p is wrong usage, reported in one line without a secret", (line, expected) => {
  const message = wrong(line);
  expect(message).toContain(expected);
  expect(message).not.toContain("\n");
  expect(message).not.toContain(key);
});

const interval = "use a number from 0.1 to 3600";
const offset = "use a whole number from 0 to 255";
const address = "use an http:// or https:// address without user and password";
const visible = "use 1 to 512 visible ASCII characters";

test.each([
  ["interval", interval, ["0", "0.09", "00.0", "1.2.3", "1.", ".5", ".", "-1", "1s", "1e3", "3600.5", "3601", "1\n2"]],
  ["gpu-id-offset", offset, ["-1", "1.5", "256", "9".repeat(30), "1\n"]],
  ["url", address, ["gate:8080", "ftp://gate", "http://", "http://user:secret@gate/", "http://a b"]],
  ["key", visible, ["secret key", 'secret"\nurl = "http://x', "schlüssel", "s".repeat(513)]],
])("refuses a wrong --%s, and says to %s", (name, expected, texts) => {
  for (const text of texts) {
    const given = { url: "http://gate", key, [name]: text };
    const args = Object.entries(given).map(([option, value]) => `--${option}=${value}`);
    const message = refusal(() => readPushGpuOptions(args, { env: {}, readFile, hostName: "gpu-01" }));
    expect(message).toEndWith(expected);
    for (const secret of [key, "secret", "schlüssel"]) expect(message).not.toContain(secret);
  }
});

test.each([
  ["interval", ["0.1", "00.10", "1", "3600", "3600.0", "0010.5"]],
  ["gpu-id-offset", ["0", "255", "007"]],
  ["url", ["HTTP://gate", "https://gate:1/path@x?y=@", "http://[::1]:8080/"]],
  ["key", ["s".repeat(512), "!~"]],
])("accepts an odd but valid --%s", (name, texts) => {
  for (const text of texts) expect(read(`--url http://gate --key ${key} --${name}=${text}`).target).toBeDefined();
});
