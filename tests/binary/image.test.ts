import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, chownSync, copyFileSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { type Simulator, startSimulator } from "../support/simulator/simulator.ts";
import { logIn } from "../support/admin-client.ts";
import { builtProgram } from "../support/built-program.ts";
import { findFreePort } from "../support/free-port.ts";
import { pollUntil } from "../support/poll-until.ts";
import { createTempFolder, type TempFolder } from "../support/temp-folder.ts";

const repository = join(import.meta.dir, "../..");
const dockerfile = await Bun.file(join(repository, ".ci/Dockerfile")).text();
const instructions = (name: string): string[] =>
  [...dockerfile.matchAll(new RegExp(`^${name} (.+)$`, "gm"))].map(([, text]) => text ?? "");
const [user = ""] = instructions("USER");
const imageEnvironment = Object.fromEntries(
  instructions("ENV").flatMap((line) => line.split(" ").map((pair) => pair.split("="))),
) as Record<string, string>;

const canMount = process.getuid?.() === 0 && Bun.spawnSync(["unshare", "--mount", "true"]).success;

/** As a daemon runs it, as far as that needs no daemon: read-only, as that user, with a volume. */
const enter = `mount --bind "$IMAGE" "$IMAGE" && mount --rbind /dev "$IMAGE/dev" && mount -t proc proc "$IMAGE/proc" &&
  mount -o remount,bind,ro "$IMAGE" && mount --bind "$VOLUME" "$IMAGE/data" &&
  exec "$@"`;

describe.skipIf(!canMount)("the root file system of the Dockerfile", () => {
  let folder: TempFolder;
  let backend: Simulator;
  let image: string;
  let volume: string;
  beforeAll(async () => {
    folder = createTempFolder();
    backend = startSimulator();
    image = folder.file("image");
    volume = folder.file("volume");
    mkdirSync(volume);
    chownSync(volume, Number(user.split(":")[0]), Number(user.split(":")[1]));
    chmodSync(folder.path, 0o755);
    await build();
  }, 240_000);
  afterAll(() => {
    backend.stop();
    folder.remove();
  });

  /** Runs the lines of the first stage on this machine, which has the packages that they install. */
  async function build(): Promise<void> {
    const binary = folder.file("tollgate");
    copyFileSync(builtProgram(), binary);
    for (const line of instructions("RUN").filter((one) => !one.startsWith("apt-get"))) {
      const here = line.replaceAll("/image", image).replaceAll(/(?<=\s)\/usr\/bin\/tollgate/g, binary);
      const { exitCode, stderr } = Bun.spawnSync(["sh", "-ec", here]);
      if (exitCode !== 0) throw new Error(`${line}: ${stderr.toString()}`);
    }
    // A daemon makes these.
    for (const name of ["dev", "proc"]) mkdirSync(join(image, name));
  }

  function run(args: string[], settings: Record<string, string>): Bun.Subprocess<"ignore", "pipe", "inherit"> {
    const pairs = Object.entries({ ...imageEnvironment, ...settings }).map((pair) => pair.join("="));
    const inside = [
      "env",
      "-i",
      ...pairs,
      "/usr/sbin/chroot",
      `--userspec=${user}`,
      image,
      "/usr/bin/tollgate",
      ...args,
    ];
    return Bun.spawn(["unshare", "--mount", "sh", "-ec", enter, "sh", ...inside], {
      env: { PATH: process.env["PATH"] ?? "", IMAGE: image, VOLUME: volume },
      stdout: "pipe",
    });
  }

  test("has nothing but the binary, its libraries, the authorities and a user", () => {
    const files = readdirSync(image, { recursive: true, encoding: "utf8" });
    expect(files.filter((name) => /(^|\/)(sh|bash|busybox|apt|dpkg|env)$/.test(name))).toEqual([]);
    expect(files).toContain("etc/ssl/certs/ca-certificates.crt");
    expect(readdirSync(join(image, "usr/bin"))).toEqual(["tollgate"]);
  });

  test("runs read-only as its user, streams a completion, is healthy, and ends with SIGTERM", async () => {
    const port = findFreePort();
    const settings = { PORT: String(port), PROXY_UPSTREAM_URL: backend.url, ADMIN_PASSWORD: "password" };
    const url = `http://127.0.0.1:${port}`;
    const program = run(["serve"], settings);
    await pollUntil(async () => program.exitCode !== null || (await fetch(`${url}/healthz`)).ok);
    const { key } = await (await logIn(url, "admin", "password")).createKey("test");
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { "x-api-key": key, "content-type": "application/json" },
      body: JSON.stringify({ model: "m", stream: true, max_tokens: 3, messages: [{ role: "user", content: "Hi" }] }),
    });
    expect(await response.text()).toEndWith("data: [DONE]\n\n");
    const [, command = ""] = /CMD (\[.*\])/.exec(instructions("HEALTHCHECK")[0] ?? "") ?? [];
    const [, ...check] = JSON.parse(command) as string[];
    expect(await run(check, settings).exited).toBe(0);
    program.kill("SIGTERM");
    expect(await program.exited).toBe(0);
    expect(await run(check, settings).exited).toBe(1);
    expect(readdirSync(volume)).toContain("tollgate.db");
  });
});
