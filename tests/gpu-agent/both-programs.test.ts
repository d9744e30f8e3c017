import { describe, expect, test } from "bun:test";
import { hostname } from "node:os";
import { pushGpuScript } from "../../src/gpu-agent/push-gpu-script.ts";
import { createAuthority, whyNoOpenssl } from "../support/authority.ts";
import { whyNoCurl } from "../support/curl.ts";
import { pollUntil } from "../support/poll-until.ts";
import { commandLine } from "../support/program.ts";
import { createGpuHost, csvOfTwo, type GpuHost, isRunning, samplesOfTwo } from "./gpu-host.ts";
import { accept, type SampleReceiver, startSampleReceiver } from "./sample-receiver.ts";

const key = `3f2a"90\\d1`;
const prints = (csv: string) => `cat <<'EOT'\n${csv}\nEOT`;

/** Named as the script's environment names them. */
type Settings = Partial<Record<`TOLLGATE_${"URL" | "KEY" | "INTERVAL" | "GPU_ID_OFFSET" | "HOST"}` | "PATH", string>>;
type Run = (host: GpuHost, settings: Settings) => Promise<string[]>;

const options = { INTERVAL: "interval", GPU_ID_OFFSET: "gpu-id-offset", HOST: "host" } as const;

/** `tollgate push-gpu` has options for what the script reads from its environment. */
const command: Run = async (_, settings) =>
  commandLine([
    "push-gpu",
    ...Object.entries(options).flatMap(([name, option]) => {
      const value = settings[`TOLLGATE_${name as keyof typeof options}`];
      return value === undefined ? [] : [`--${option}=${value}`];
    }),
  ]);

const script =
  (shell: string): Run =>
  async (host) => {
    const path = `${host.folder}/push-gpu.sh`;
    await Bun.write(path, pushGpuScript);
    return [shell, path];
  };

const shells = ["dash", "bash"].flatMap((name) => (whyNoCurl === undefined ? (Bun.which(name) ?? []) : []));
const programs: [name: string, run: Run][] = [
  ["the command", command],
  ...shells.map((shell): [string, Run] => [`the script under ${shell}`, script(shell)]),
];

async function start(run: Run, host: GpuHost, settings: Settings) {
  const given = { TOLLGATE_INTERVAL: "0.1", TOLLGATE_KEY: key, ...settings };
  // In a locale in which letters of other languages are visible characters.
  const env = { ...host.env, LC_ALL: "C.UTF-8", ...given };
  return Bun.spawn(await run(host, given), { env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
}

const to = ({ url }: Pick<SampleReceiver, "url">): Settings => ({ TOLLGATE_URL: `${url}/` });

/** On a host that has nothing but its own tools, so that a program that starts exits. */
const needed = ({ folder }: GpuHost): Settings => ({
  TOLLGATE_URL: "http://gate",
  TOLLGATE_HOST: "gpu-01",
  PATH: `${folder}/bin`,
});

/** Reads standard error until it contains a text. */
async function readErrors({ stderr }: Awaited<ReturnType<typeof start>>, expected: string): Promise<string> {
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

async function stop(child: Awaited<ReturnType<typeof start>>): Promise<number> {
  child.kill("SIGTERM");
  return child.exited;
}

test.skipIf(whyNoCurl !== undefined)("dash is one of the shells that are tested", () => {
  expect(shells[0]).toEndWith("dash");
});

const shellcheck = Bun.which("shellcheck");

test.skipIf(shellcheck === null)("shellcheck reports nothing", () => {
  const { stdout } = Bun.spawnSync([shellcheck ?? "", "--shell=sh", "-"], { stdin: Buffer.from(pushGpuScript) });
  expect(stdout.toString()).toBe("");
});

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

const samples: [what: string, csv: string, gpus: unknown[], settings?: Settings][] = [
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
    { TOLLGATE_GPU_ID_OFFSET: "8" },
  ],
  [
    "no line that is not about a GPU",
    `some words\n\nindex, name, power.draw [W], temperature.gpu, memory.used [MiB], memory.total [MiB], x\n0, L4, 30.1, 40\n-1, NVIDIA L4, 30.1, 40, 1, 2, 3\n${csvOfTwo}`,
    samplesOfTwo,
  ],
];

describe.each(programs)("%s", (_, run) => {
  // What follows is tried under dash alone: the script uses nothing that bash alone knows.
  test.each(samples)("posts %s", async (_what, csv, gpus, settings = {}) => {
    await using host = await createGpuHost({ "nvidia-smi": prints(csv) });
    await using receiver = startSampleReceiver();
    const child = await start(run, host, { TOLLGATE_HOST: "gpu-01", ...to(receiver), ...settings });
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
});

describe.each(programs.slice(0, 2))("%s", (_, run) => {
  test.each([
    [undefined, hostname().slice(0, 64)],
    [' a "quoted\\" name ', 'a "quoted\\" name'],
  ])("with the name %p the host is %p", async (name, expected) => {
    await using host = await createGpuHost({ "nvidia-smi": prints(csvOfTwo) });
    await using receiver = startSampleReceiver();
    const child = await start(run, host, { ...to(receiver), ...(name !== undefined && { TOLLGATE_HOST: name }) });
    await receiver.received(1);
    expect(receiver.posts[0]?.body).toMatchObject({ host: expected });
    await stop(child);
  });

  test("sends the others of a host whose tool ends because of a lost one, and logs that once", async () => {
    const lost = "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.";
    await using host = await createGpuHost({ "nvidia-smi": `${prints(csvOfTwo)}\necho "${lost}"; exit 15` });
    await using receiver = startSampleReceiver();
    const child = await start(run, host, { TOLLGATE_HOST: "gpu-01", ...to(receiver) });
    await receiver.received(3);
    expect(receiver.posts[2]?.body).toEqual({ host: "gpu-01", gpus: samplesOfTwo });
    await stop(child);
    const errors = await new Response(child.stderr).text();
    expect(errors.match(/sending samples/gi)).toHaveLength(1);
    expect(errors).not.toContain("no readings");
    expect(errors).not.toContain("restarting");
  });

  test("keeps the key out of the command lines and of the tool's environment", async () => {
    await using host = await createGpuHost({
      "nvidia-smi": `echo "0, [$TOLLGATE_KEY], 1, 2, 3, 4, 5"`,
      curl: `for each in "$@"; do echo "$each" >>$folder/curl; done; exec "$(command -v -p curl)" "$@"`,
    });
    await using receiver = startSampleReceiver();
    await Bun.write(`${host.folder}/curl`, "");
    const child = await start(run, host, to(receiver));
    await receiver.received(1);
    expect(receiver.posts[0]).toMatchObject({ authorization: `Bearer ${key}`, body: { gpus: [{ name: "[]" }] } });
    expect(await Bun.file(`${host.folder}/curl`).text()).not.toContain("3f2a");
    await stop(child);
  });

  test("exits at once on TERM while the tool hangs, and leaves no process and no file", async () => {
    await using host = await createGpuHost({ "nvidia-smi": "exec sleep 600" });
    const child = await start(run, host, { TOLLGATE_URL: "http://127.0.0.1:9" });
    await pollUntil(async () => (await host.pids()).length > 0);
    expect(await stop(child)).toBe(0);
    // Their parent is gone, so another process reaps them, which may take a moment.
    await pollUntil(async () => !(await host.pids()).some(isRunning));
    expect(await Array.fromAsync(new Bun.Glob("push-gpu.*/*").scan(host.folder))).toEqual([]);
  });

  test("exits at once on TERM while the server does not respond", async () => {
    await using host = await createGpuHost({ "nvidia-smi": prints(csvOfTwo) });
    await using receiver = startSampleReceiver(() => new Promise<Response>(() => undefined));
    const child = await start(run, host, to(receiver));
    await receiver.received(1);
    expect(await stop(child)).toBe(0);
  });

  test("logs a failure once, and the recovery", async () => {
    await using host = await createGpuHost({ "nvidia-smi": prints(csvOfTwo) });
    await using receiver = startSampleReceiver(() => new Response("", { status: 503 }));
    const child = await start(run, host, to(receiver));
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
    const child = await start(run, host, to(receiver));
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
      const child = await start(run, host, { TOLLGATE_URL: url });
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
    const child = await start(run, host, to(gone));
    const errors = await readErrors(child, "connection refused");
    expect(errors).toContain("nvidia-smi gave no readings: ");
    expect(errors).toContain("No devices were found");
    await using late = startSampleReceiver(undefined, Number(new URL(gone.url).port));
    await late.received(1);
    await stop(child);
  });

  test.each<[Settings, number, RegExp]>([
    [{ TOLLGATE_URL: "" }, 2, /URL is not set|--url: missing/],
    [{ TOLLGATE_KEY: "" }, 2, /KEY is not set|API key: missing/],
    [{}, 1, /nvidia-smi/],
  ])("refuses to start with %j", async (settings, status, message) => {
    await using host = await createGpuHost({});
    const child = await start(run, host, { ...needed(host), ...settings });
    expect(await new Response(child.stderr).text()).toMatch(message);
    expect(await child.exited).toBe(status);
  });

  test.each<[keyof Settings, string, string[]]>([
    [
      "TOLLGATE_INTERVAL",
      "use a number from 0.1 to 3600",
      ["0", "0.09", "00.0", "1.2.3", "1.", ".5", ".", "-1", "1s", "1e3", "3600.5", "3601", "9".repeat(30), "1\n2"],
    ],
    ["TOLLGATE_GPU_ID_OFFSET", "use a whole number from 0 to 255", ["-1", "1.5", "256", "9".repeat(30), "1\n"]],
    [
      "TOLLGATE_URL",
      "use an http:// or https:// address without user and password",
      ["gate:8080", "ftp://gate", "http://", "http://user:secret@gate/", "http://a b"],
    ],
    [
      "TOLLGATE_KEY",
      "use 1 to 512 visible ASCII characters",
      ["secret key", 'secret"\nurl = "http://x', "schlüssel", "s".repeat(513)],
    ],
  ])("refuses a %s in one line, which says to %s", async (name, message, texts) => {
    await using host = await createGpuHost({});
    for (const text of texts) {
      const settings = { ...needed(host), [name]: text };
      const child = await start(run, host, settings);
      const stderr = await new Response(child.stderr).text();
      expect({ text, status: await child.exited, lines: stderr.trim().split("\n").length }).toEqual({
        text,
        status: 2,
        lines: 1,
      });
      expect(stderr).toEndWith(`${message}\n`);
      for (const secret of ["3f2a", "secret", "schlüssel"]) expect(stderr).not.toContain(secret);
    }
  });

  test("accepts odd but valid settings", async () => {
    await using host = await createGpuHost({});
    const accepted = {
      TOLLGATE_INTERVAL: ["0.1", "00.10", "1", "3600", "3600.0", "0010.5"],
      TOLLGATE_GPU_ID_OFFSET: ["0", "255", "007"],
      TOLLGATE_URL: ["HTTP://gate", "https://gate:1/path@x?y=@", "http://[::1]:8080/"],
      TOLLGATE_KEY: ["s".repeat(512), "!~"],
    };
    for (const [name, texts] of Object.entries(accepted)) {
      for (const text of texts) {
        const settings = { ...needed(host), [name]: text };
        const child = await start(run, host, settings);
        expect({ text, stderr: await new Response(child.stderr).text(), status: await child.exited }).toEqual({
          text,
          stderr: expect.stringMatching(/PATH.*\n$/),
          status: 1,
        });
      }
    }
  });
});

test.each([
  ["x".repeat(70), "x".repeat(64)],
  ["名", "???"],
])("the script sends the host name %p as %p", async (name, sent) => {
  await using host = await createGpuHost({ "nvidia-smi": prints(csvOfTwo) });
  await using receiver = startSampleReceiver();
  const child = await start(script("sh"), host, { ...to(receiver), TOLLGATE_HOST: name });
  await receiver.received(1);
  expect(receiver.posts[0]?.body).toMatchObject({ host: sent });
  await stop(child);
});
