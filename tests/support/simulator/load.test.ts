import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const streams = 1000;
const tokens = 100;
const perSecond = 50;
/** The share of a benchmark that its backend may take. Usual are about 12, nearly all of it in the kernel. */
const maxCpuMicrosPerFrame = 40;

const cpuMicrosOf = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * 10_000;
};

/** Reads one stream to its end. @returns the number of its events */
async function readStream(port: number): Promise<number> {
  const body = JSON.stringify({ model: "m", messages: [], stream: true, max_tokens: tokens });
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  let events = 0;
  await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      open: (socket) =>
        void socket.write(
          `POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
        ),
      data(_, bytes) {
        for (let at = bytes.indexOf("data: "); at !== -1; at = bytes.indexOf("data: ", at + 1)) events++;
      },
      close: () => resolve(events),
      error: (_, error) => reject(error),
    },
  });
  return promise;
}

test("a simulator process paces a thousand streams, loses no frame and uses little CPU", async () => {
  const file = join(import.meta.dir, "../../bench/simulator.ts");
  const child = Bun.spawn([process.execPath, file, "--rate", String(perSecond)], { stdout: "pipe" });
  try {
    const lines = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
    const { port, pid } = JSON.parse((await lines.read()).value ?? "") as { port: number; pid: number };
    expect(pid).toBe(child.pid);
    const cpuBefore = cpuMicrosOf(pid);
    const startedAt = performance.now();
    const events = await Promise.all(Array.from({ length: streams }, () => readStream(port)));
    const elapsedMs = performance.now() - startedAt;
    const cpuPerFrame = (cpuMicrosOf(pid) - cpuBefore) / (streams * tokens);

    // The role, the tokens, the finish reason and `[DONE]`.
    expect(events).toEqual(Array.from({ length: streams }, () => tokens + 3));
    expect(elapsedMs).toBeGreaterThan((tokens * 1000) / perSecond - 50);
    expect(cpuPerFrame).toBeLessThan(maxCpuMicrosPerFrame);
    child.kill("SIGTERM");
    const stats = JSON.parse((await lines.read()).value ?? "") as unknown;
    expect(stats).toMatchObject({ finished: streams, open: 0, counted: { outputTokens: streams * tokens } });
    expect(await child.exited).toBe(0);
  } finally {
    child.kill("SIGKILL");
  }
});
