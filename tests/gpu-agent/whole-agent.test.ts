import { expect, test } from "bun:test";
import { hostname } from "node:os";
import { createAuthority, whyNoOpenssl } from "../support/authority.ts";
import { pollUntil } from "../support/poll-until.ts";
import { commandLine } from "../support/program.ts";
import { createGpuHost, csvOfTwo, type GpuHost, isRunning, samplesOfTwo } from "./gpu-host.ts";
import { accept, type SampleReceiver, startSampleReceiver } from "./sample-receiver.ts";

const key = `3f2a"90\\d1`;
const prints = (csv: string) => `cat <<'EOT'\n${csv}\nEOT`;

/** Options by name, beside the address. */
type Options = { url: string; host?: string; "gpu-id-offset"?: number };

function start(host: GpuHost, options: Options) {
  const args = Object.entries({ interval: 0.1, ...options }).map(([name, value]) => `--${name}=${value}`);
  // In a locale in which letters of other languages are visible characters.
  const env = { ...host.env, LC_ALL: "C.UTF-8", TOLLGATE_KEY: key };
  return Bun.spawn(commandLine(["push-gpu", ...args]), { env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
}

/** Reads standard error until it contains a text. */
async function readErrors({ stderr }: ReturnType<typeof start>, expected: string): Promise<string> {
  let text = "";
  const decoder = new TextDecoder();
  const reader = stderr.getReader();
  while (!text.includes(expected)) {
    const { done, value } = await reader.read();
    if (done) throw new Error(`exited after: ${text}`);
    text += decoder.decode(value);
  }
  reader.releaseLock();
  return text;
}

async function stop(child: ReturnType<typeof start>): Promise<number> {
  child.kill("SIGTERM");
  return child.exited;
}

/** What nvidia-smi prints instead of a number. */
const missing = [
  "[N/A]",
  "[Not Supported]",
  "[Unknown Error]",
  "[Insufficient Permissions]",
  "[GPU is lost]",
  "ERR!",
  "",
];

const sample = (gpu_id: number, name: string, ...values: number[]): object => ({
  gpu_id,
  name,
  ...Object.fromEntries(values.map((value, at) => [measures[at], value])),
});
const measures = ["power_draw_w", "temp_c", "memory_used_mb", "memory_total_mb", "utilization_pct"];

const samples: [what: string, csv: string, gpus: unknown[], options?: Partial<Options>][] = [
  ["every field", csvOfTwo, samplesOfTwo],
  [
    "no cell that is not a number",
    missing.map((cell, index) => `${index}, Tesla K80, ${Array(5).fill(cell).join(", ")}`).join("\n"),
    missing.map((_, index) => sample(index, "Tesla K80")),
  ],
  ["numbers with units", "0, L4, 30.5 W, 40 C, 1 MiB, 2 MiB, 3 %", [sample(0, "L4", 30.5, 40, 1, 2, 3)]],
  ["values at the server's bounds", "0, L4, 10000, 150, 0, 1023.6, 100", [sample(0, "L4", 10_000, 150, 0, 1024, 100)]],
  ["no value beyond them", "0, NVIDIA L4, 10000.1, 151, -1, 99999999999999999, 101", [sample(0, "NVIDIA L4")]],
  [
    "names with commas and quotes, with carriage returns",
    '1, A "quoted\\" name, with comma, 1, 2, 3, 4, 5\r\n',
    [sample(1, 'A "quoted\\" name, with comma', 1, 2, 3, 4, 5)],
  ],
  ["64 characters of a name", `0, ${"x".repeat(70)}, , , , , `, [sample(0, "x".repeat(64))]],
  [
    "ids with the offset, up to 255",
    "1, GPU, , , , , \n247, GPU, , , , , \n248, GPU, , , , , ",
    [sample(9, "GPU"), sample(255, "GPU")],
    { "gpu-id-offset": 8 },
  ],
  [
    "no line that is not about a GPU",
    `some words\n\nindex, name, power.draw [W], temperature.gpu, memory.used [MiB], memory.total [MiB], x\n0, L4, 30.1, 40\n-1, NVIDIA L4, 30.1, 40, 1, 2, 3\n${csvOfTwo}`,
    samplesOfTwo,
  ],
];

test.each(samples)("posts %s", async (_what, csv, gpus, options = {}) => {
  await using host = await createGpuHost({ "nvidia-smi": prints(csv) });
  await using receiver = startSampleReceiver();
  const child = start(host, { host: "gpu-01", url: receiver.url, ...options });
  await receiver.received(1);
  expect(receiver.posts[0]).toEqual({
    path: "/api/gpu-stats",
    method: "POST",
    authorization: `Bearer ${key}`,
    contentType: "application/json",
    body: { host: "gpu-01", gpus },
  });
  expect(await stop(child)).toBe(0);
  expect((await host.pids()).filter(isRunning)).toEqual([]);
});

test.each([
  [undefined, hostname().slice(0, 64)],
  [' a "quoted\\" name ', 'a "quoted\\" name'],
])("with the name %p the host is %p", async (name, expected) => {
  await using host = await createGpuHost({ "nvidia-smi": prints(csvOfTwo) });
  await using receiver = startSampleReceiver();
  const child = start(host, { url: receiver.url, ...(name !== undefined && { host: name }) });
  await receiver.received(1);
  expect(receiver.posts[0]?.body).toMatchObject({ host: expected });
  await stop(child);
});

test("sends the others of a host whose tool ends because of a lost one, and logs that once", async () => {
  const lost = "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.";
  await using host = await createGpuHost({ "nvidia-smi": `${prints(csvOfTwo)}\necho "${lost}"; exit 15` });
  await using receiver = startSampleReceiver();
  const child = start(host, { host: "gpu-01", url: receiver.url });
  await receiver.received(3);
  expect(receiver.posts[2]?.body).toEqual({ host: "gpu-01", gpus: samplesOfTwo });
  await stop(child);
  const errors = await new Response(child.stderr).text();
  expect(errors.match(/sending samples/gi)).toHaveLength(1);
  expect(errors).not.toContain("no readings");
  expect(errors).not.toContain("restarting");
});

test("keeps the key out of the tool's environment", async () => {
  await using host = await createGpuHost({ "nvidia-smi": `echo "0, [$TOLLGATE_KEY], 1, 2, 3, 4, 5"` });
  await using receiver = startSampleReceiver();
  const child = start(host, { url: receiver.url });
  await receiver.received(1);
  expect(receiver.posts[0]).toMatchObject({ authorization: `Bearer ${key}`, body: { gpus: [{ name: "[]" }] } });
  await stop(child);
});

test("exits at once on TERM while the tool hangs, and leaves no process", async () => {
  await using host = await createGpuHost({ "nvidia-smi": "exec sleep 600" });
  const child = start(host, { url: "http://127.0.0.1:9" });
  await pollUntil(async () => (await host.pids()).length > 0);
  expect(await stop(child)).toBe(0);
  // Their parent is gone, so another process reaps them, which may take a moment.
  await pollUntil(async () => !(await host.pids()).some(isRunning));
});

test("exits at once on TERM while the server does not respond", async () => {
  await using host = await createGpuHost({ "nvidia-smi": prints(csvOfTwo) });
  await using receiver = startSampleReceiver(() => new Promise<Response>(() => undefined));
  const child = start(host, { url: receiver.url });
  await receiver.received(1);
  expect(await stop(child)).toBe(0);
});

test("logs a failure once, and the recovery", async () => {
  await using host = await createGpuHost({ "nvidia-smi": prints(csvOfTwo) });
  await using receiver = startSampleReceiver(() => new Response("", { status: 503 }));
  const child = start(host, { url: receiver.url });
  await receiver.received(2);
  receiver.respond = accept;
  const errors = await readErrors(child, "ending samples");
  expect(errors.split("the server responded with status 503")).toHaveLength(2);
  await stop(child);
});

test.each([
  ["a rejected key", () => new Response("", { status: 401 }), "the API key is unknown, inactive or expired (401)"],
  [
    "a key of another scope",
    () => Response.json({ error: "This API key may not post GPU samples" }, { status: 403 }),
    "API key may not post GPU samples",
  ],
  ["a wrong path", () => new Response("", { status: 404 }), "wrong address (404)"],
  ["a redirect, which it does not follow", ({ url }: SampleReceiver) => Response.redirect(`${url}/b`), "(302)"],
  ["a web page", () => new Response("<html>", { headers: { "content-type": "text/html" } }), "is not Tollgate"],
  ["a failure", () => new Response("<html>", { status: 502 }), "the server responded with status 502"],
])("explains %s", async (_what, respond, explanation) => {
  await using host = await createGpuHost({ "nvidia-smi": prints(csvOfTwo) });
  await using receiver = startSampleReceiver(() => respond(receiver));
  const child = start(host, { url: receiver.url });
  const errors = await readErrors(child, explanation);
  expect(errors).not.toContain("3f2a");
  expect(new Set(receiver.posts.map(({ path }) => path))).toEqual(new Set(["/api/gpu-stats"]));
  await stop(child);
});

test.skipIf(whyNoOpenssl !== undefined)("tells an untrusted certificate from a missing one", async () => {
  await using host = await createGpuHost({ "nvidia-smi": prints(csvOfTwo) });
  using authority = await createAuthority();
  const { certFile, keyFile } = authority.sign("gate");
  const tls = { cert: Bun.file(certFile), key: Bun.file(keyFile) };
  await using encrypted = Bun.serve({ port: 0, hostname: "127.0.0.1", tls, fetch: () => new Response() });
  await using plain = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  for (const [url, explanation] of [
    [`https://127.0.0.1:${encrypted.port}`, "the TLS certificate is not trusted"],
    [`https://127.0.0.1:${plain.port}`, "does not speak TLS"],
    [`http://127.0.0.1:${encrypted.port}`, "does it speak HTTPS?"],
  ] as const) {
    const child = start(host, { url });
    await readErrors(child, explanation);
    await stop(child);
  }
});

test("explains a stopped driver, then a refused connection, until a server starts", async () => {
  await using host = await createGpuHost({
    "nvidia-smi": `[ "$starts" = 1 ] && { echo "No devices were found"; exit 6; }; echo "${csvOfTwo}"`,
  });
  const gone = startSampleReceiver();
  await gone[Symbol.asyncDispose]();
  const child = start(host, { url: gone.url });
  const errors = await readErrors(child, "connection refused");
  expect(errors).toContain("nvidia-smi gave no readings: ");
  expect(errors).toContain("No devices were found");
  await using late = startSampleReceiver(undefined, Number(new URL(gone.url).port));
  await late.received(1);
  await stop(child);
});
