import { describe, expect, test } from "bun:test";
import { hostname } from "node:os";
import { readPushGpuOptions, UsageError } from "../../src/gpu-agent/push-gpu-options.ts";
import { pushGpuScript } from "../../src/gpu-agent/push-gpu-script.ts";
import { pollUntil } from "../support/poll-until.ts";
import { createGpuHost, csvOfTwo, type GpuHost, isRunning, samplesOfTwo } from "./gpu-host.ts";
import { accept, type SampleReceiver, startSampleReceiver } from "./sample-receiver.ts";
import { createAuthority, whyNoOpenssl } from "../support/authority.ts";
import { whyNoCurl } from "../support/curl.ts";

const key = `3f2a"90\\d1`;
const prints = (csv: string) => `cat <<'EOT'\n${csv}\nEOT`;

const shells = ["dash", "bash"].flatMap((name) => Bun.which(name) ?? []);

async function start(shell: string, host: GpuHost, env: Record<string, string>) {
  const path = `${host.folder}/push-gpu.sh`;
  await Bun.write(path, pushGpuScript);
  return Bun.spawn([shell, path], {
    env: { ...host.env, TOLLGATE_INTERVAL: "0.1", TOLLGATE_HOST: "gpu-01", ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
}

const settings = (receiver: SampleReceiver) => ({ TOLLGATE_URL: `${receiver.url}/`, TOLLGATE_KEY: key });

/** Reads standard error until it contains a text. */
async function readErrors(child: Awaited<ReturnType<typeof start>>, expected: string): Promise<string> {
  let text = "";
  const decoder = new TextDecoder();
  const reader = child.stderr.getReader();
  while (!text.includes(expected)) {
    const { done, value } = await reader.read();
    if (done) throw new Error(`exited after: ${text}`);
    text += decoder.decode(value);
  }
  reader.releaseLock();
  return text;
}

async function stop(child: Awaited<ReturnType<typeof start>>): Promise<number> {
  child.kill("SIGTERM");
  return child.exited;
}

test("dash is one of the shells that are tested", () => {
  expect(shells[0]).toEndWith("dash");
});

const shellcheck = Bun.which("shellcheck");

test.skipIf(shellcheck === null)("shellcheck reports nothing", () => {
  const { stdout } = Bun.spawnSync([shellcheck ?? "", "--shell=sh", "-"], { stdin: Buffer.from(pushGpuScript) });
  expect(stdout.toString()).toBe("");
});

describe.skipIf(whyNoCurl !== undefined).each(shells)("the script under %s", (shell) => {
  test("posts the same body as the command", async () => {
    await using host = await createGpuHost({ "nvidia-smi": prints(csvOfTwo) });
    await using receiver = startSampleReceiver();
    const child = await start(shell, host, settings(receiver));
    await receiver.received(3);
    expect(receiver.posts[2]).toEqual({
      path: "/api/gpu-stats",
      method: "POST",
      authorization: `Bearer ${key}`,
      contentType: "application/json",
      body: { host: "gpu-01", gpus: samplesOfTwo },
    });
    expect(await stop(child)).toBe(0);
  });

  test("adds the offset, drops ids over 255, and leaves out values that are invalid or out of bounds", async () => {
    const csv = '1, A "quoted\\" name, with comma, [N/A], ERR!, 12.6, [Not Supported], 101\r\n255, GPU, 1, 2, 3, 4, 5';
    await using host = await createGpuHost({ "nvidia-smi": prints(`${csv}\nsome words\n`) });
    await using receiver = startSampleReceiver();
    const child = await start(shell, host, { ...settings(receiver), TOLLGATE_GPU_ID_OFFSET: "8" });
    await receiver.received(1);
    expect(receiver.posts[0]?.body).toEqual({
      host: "gpu-01",
      gpus: [{ gpu_id: 9, name: 'A "quoted\\" name, with comma', memory_used_mb: 13 }],
    });
    await stop(child);
  });

  test.each([
    [undefined, hostname().slice(0, 64)],
    [' a "quoted\\" name ', 'a "quoted\\" name'],
    ["x".repeat(70), "x".repeat(64)],
    ["名", "???"],
  ])("with TOLLGATE_HOST=%p the host is %p", async (name, expected) => {
    await using host = await createGpuHost({ "nvidia-smi": prints(csvOfTwo) });
    await using receiver = startSampleReceiver();
    const child = await start(shell, host, { ...settings(receiver), TOLLGATE_HOST: name ?? "" });
    await receiver.received(1);
    expect(receiver.posts[0]?.body).toMatchObject({ host: expected });
    await stop(child);
  });

  test("keeps the key out of the command lines and of the tool's environment", async () => {
    await using host = await createGpuHost({
      "nvidia-smi": `echo "0, [$TOLLGATE_KEY], 1, 2, 3, 4, 5"`,
      curl: `for each in "$@"; do echo "$each" >>$folder/curl; done; exec "$(command -v -p curl)" "$@"`,
    });
    await using receiver = startSampleReceiver();
    const child = await start(shell, host, settings(receiver));
    await receiver.received(1);
    expect(receiver.posts[0]).toMatchObject({ authorization: `Bearer ${key}`, body: { gpus: [{ name: "[]" }] } });
    const commandLine = await Bun.file(`${host.folder}/curl`).text();
    expect(commandLine).toContain("--config");
    expect(commandLine).not.toContain("3f2a");
    await stop(child);
  });

  test("exits at once on TERM while the tool hangs, and leaves no process and no file", async () => {
    await using host = await createGpuHost({ "nvidia-smi": "exec sleep 600" });
    const child = await start(shell, host, { TOLLGATE_URL: "http://127.0.0.1:9", TOLLGATE_KEY: key });
    await pollUntil(async () => (await host.pids()).length > 0);
    expect(await stop(child)).toBe(0);
    // Their parent is gone, so another process reaps them, which may take a moment.
    await pollUntil(async () => !(await host.pids()).some(isRunning));
    expect(await Array.fromAsync(new Bun.Glob("push-gpu.*/*").scan(host.folder))).toEqual([]);
  });

  test("exits at once on TERM while the server does not respond", async () => {
    await using host = await createGpuHost({ "nvidia-smi": prints(csvOfTwo) });
    await using receiver = startSampleReceiver(() => new Promise<Response>(() => undefined));
    const child = await start(shell, host, settings(receiver));
    await receiver.received(1);
    expect(await stop(child)).toBe(0);
  });

  test("prints one line per change of state", async () => {
    await using host = await createGpuHost({ "nvidia-smi": prints(csvOfTwo) });
    await using receiver = startSampleReceiver(() => new Response("", { status: 503 }));
    const child = await start(shell, host, settings(receiver));
    await receiver.received(3);
    receiver.respond = accept;
    const errors = await readErrors(child, "sending samples");
    expect(errors.trim().split("\n")).toEqual([
      `push-gpu: ${receiver.url}/api/gpu-stats: the server responded with status 503`,
      `push-gpu: sending samples to ${receiver.url}/api/gpu-stats`,
    ]);
    await stop(child);
  });

  test.each([
    ["a rejected key", () => new Response("", { status: 401 }), "the API key is unknown, inactive or expired (401)"],
    ["a key of another scope", () => new Response("", { status: 403 }), "the API key may not post GPU samples"],
    ["a wrong path", () => new Response("", { status: 404 }), "wrong address (404)"],
    ["a redirect", () => Response.redirect("http://127.0.0.1:9/"), "wrong address (302)"],
    ["a web page", () => new Response("<html>", { headers: { "content-type": "text/html" } }), "is not Tollgate"],
  ])("explains %s", async (_, respond, explanation) => {
    await using host = await createGpuHost({ "nvidia-smi": prints(csvOfTwo) });
    await using receiver = startSampleReceiver(respond);
    const child = await start(shell, host, settings(receiver));
    const errors = await readErrors(child, explanation);
    expect(errors).not.toContain("3f2a");
    await stop(child);
  });

  test.skipIf(whyNoOpenssl !== undefined)("tells an untrusted certificate from a missing one", async () => {
    await using host = await createGpuHost({ "nvidia-smi": prints(csvOfTwo) });
    using authority = await createAuthority();
    const { certFile, keyFile } = authority.sign("gate");
    const tls = { cert: Bun.file(certFile), key: Bun.file(keyFile) };
    await using encrypted = Bun.serve({ port: 0, hostname: "127.0.0.1", tls, fetch: () => new Response() });
    await using plain = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
    const ports = { encrypted: String(encrypted.port), plain: String(plain.port) };
    for (const [url, explanation] of [
      [`https://127.0.0.1:${ports.encrypted}`, "the TLS certificate is not trusted"],
      [`https://127.0.0.1:${ports.plain}`, "does not speak TLS"],
      [`http://127.0.0.1:${ports.encrypted}`, "does it speak HTTPS?"],
    ]) {
      const child = await start(shell, host, { TOLLGATE_URL: url ?? "", TOLLGATE_KEY: key });
      await readErrors(child, explanation ?? "");
      await stop(child);
    }
  });

  test("explains a refused connection and a stopped driver", async () => {
    await using host = await createGpuHost({
      "nvidia-smi": `[ "$starts" = 1 ] && { echo "No devices were found"; exit 6; }; echo "${csvOfTwo}"`,
    });
    const gone = startSampleReceiver();
    await gone[Symbol.asyncDispose]();
    const child = await start(shell, host, settings(gone));
    const errors = await readErrors(child, "connection refused");
    expect(errors).toContain("nvidia-smi gave no readings: No devices were found");
    await stop(child);
  });

  test.each([
    [{ TOLLGATE_KEY: key }, 2, "TOLLGATE_URL is not set"],
    [{ TOLLGATE_URL: "http://gate" }, 2, "TOLLGATE_KEY is not set"],
    [{ TOLLGATE_URL: "http://gate", TOLLGATE_KEY: key, TOLLGATE_GPU_ID_OFFSET: "-1" }, 2, "TOLLGATE_GPU_ID_OFFSET"],
    [{ TOLLGATE_URL: "http://gate", TOLLGATE_KEY: key, TOLLGATE_INTERVAL: "soon" }, 2, "TOLLGATE_INTERVAL"],
    [{ TOLLGATE_URL: "http://gate", TOLLGATE_KEY: key }, 1, "nvidia-smi is not on the PATH"],
  ])("refuses to start with %j", async (env, status, message) => {
    await using host = await createGpuHost({});
    const child = await start(shell, host, { ...env, PATH: `${host.folder}/bin` });
    expect(await new Response(child.stderr).text()).toContain(message);
    expect(await child.exited).toBe(status);
  });

  test.each([
    [
      "TOLLGATE_INTERVAL: its value is not allowed; use a number from 0.1 to 3600",
      ["0", "0.09", "00.0", "1.2.3", "1.", ".5", ".", "-1", "1s", "1e3", "3600.5", "3601", "9".repeat(30), "1\n2"],
    ],
    [
      "TOLLGATE_GPU_ID_OFFSET: its value is not allowed; use a whole number from 0 to 255",
      ["-1", "1.5", "256", "9".repeat(30), "1\n"],
    ],
    [
      "TOLLGATE_URL: its value is not allowed; use an http:// or https:// address without user and password",
      ["gate:8080", "ftp://gate", "http://", "http://user:secret@gate/", "http://a b"],
    ],
    [
      "TOLLGATE_KEY: its value is not allowed; use 1 to 512 visible ASCII characters",
      ["secret key", 'secret"\nurl = "http://x', "schlüssel", "s".repeat(513)],
    ],
  ])("refuses, as the command does and in one line: %s", async (message, texts) => {
    await using host = await createGpuHost({});
    for (const text of texts) {
      const env = { ...needed, [message.split(":")[0] ?? ""]: text };
      const child = await start(shell, host, { ...env, PATH: `${host.folder}/bin` });
      const stderr = await new Response(child.stderr).text();
      const status = await child.exited;
      expect({ text, stderr, status }).toEqual({ text, stderr: `push-gpu: ${message}\n`, status: 2 });
      expect(problemOfCommand(env)).toContain("allowed");
    }
  });

  test("accepts what the command accepts", async () => {
    await using host = await createGpuHost({});
    const accepted = {
      TOLLGATE_INTERVAL: ["0.1", "00.10", "1", "3600", "3600.0", "0010.5"],
      TOLLGATE_GPU_ID_OFFSET: ["0", "255", "007"],
      TOLLGATE_URL: ["HTTP://gate", "https://gate:1/path@x?y=@", "http://[::1]:8080/"],
      TOLLGATE_KEY: ["s".repeat(512), "!~"],
    };
    for (const [name, texts] of Object.entries(accepted)) {
      for (const text of texts) {
        const env = { ...needed, [name]: text };
        const child = await start(shell, host, { ...env, PATH: `${host.folder}/bin` });
        const stderr = await new Response(child.stderr).text();
        expect({ text, stderr }).toEqual({ text, stderr: "push-gpu: nvidia-smi is not on the PATH\n" });
        expect(problemOfCommand(env)).toBeUndefined();
      }
    }
  });
});

/** In a locale in which letters of other languages are visible characters. */
const needed = { TOLLGATE_URL: "http://gate", TOLLGATE_KEY: key, LC_ALL: "C.UTF-8" };

/** What `tollgate push-gpu` says about the same settings. */
function problemOfCommand(env: Record<string, string>): string | undefined {
  const { TOLLGATE_INTERVAL: interval = "1", TOLLGATE_GPU_ID_OFFSET: offset = "0" } = env;
  const args = [`--interval=${interval}`, `--gpu-id-offset=${offset}`];
  try {
    readPushGpuOptions(args, { env, readFile: () => "", hostName: "gpu-01" });
    return undefined;
  } catch (error) {
    if (error instanceof UsageError) return error.message;
    throw error;
  }
}
