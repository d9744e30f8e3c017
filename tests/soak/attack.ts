/**
 * `attack.ts URL KEY MS`: what strangers and one hostile key can send, in a process of its own, on loopback, with a fixed
 * number of connections that each rest between two requests. It ends by itself after MS milliseconds.
 */
import { connectRaw } from "../support/raw-client.ts";

interface Attack {
  /** Requests at the same time. */
  connections: number;
  restMs: number;
  send: () => Promise<unknown>;
}

const [url = "", key = "", durationMs = "0"] = process.argv.slice(2);
const megabyte = 1024 * 1024;

const random = (limit: number): number => Math.floor(Math.random() * limit);
const address = (): string => `${random(223) + 1}.${random(256)}.${random(256)}.${random(256)}`;

const filled = (start: string, part: string, end: string): string =>
  start + part.repeat(Math.floor((2 * megabyte) / part.length)) + end;

/** The backend refuses them, so that none counts. */
const hostileBodies = [
  filled('{"model":"m","messages":[', "{},", "{}]}"),
  filled("{", '"model":"m",', '"messages":[]}'),
  filled('{"model":"m","messages":', "[", "]}"),
  filled('{"model":"m","messages":[{"role":"user","content":"', "\\u4e2d", '"}]}'),
];

const attacks: Readonly<Record<string, Attack>> = {
  strangers: {
    connections: 100,
    restMs: 100,
    send: () => post("/v1/chat/completions", { "x-api-key": `wrong${random(1000)}` }, '{"model":"m"}'),
  },
  "login flood": {
    connections: 64,
    restMs: 100,
    send: () => post("/api/login", { "x-forwarded-for": address() }, '{"username":"admin","password":"wrong"}'),
  },
  "half-sent logins": { connections: 32, restMs: 200, send: sendHalf },
  "GPU flood": {
    connections: 16,
    restMs: 50,
    send: () => post("/api/gpu-stats", { "x-api-key": key }, '{"gpus":[{"gpu_id":200,"name":"Flood"}]}'),
  },
  "hostile bodies": {
    connections: 2,
    restMs: 500,
    send: () => {
      const headers = { "x-api-key": key, "x-simulate": "status=500" };
      return post("/v1/chat/completions", headers, hostileBodies[random(hostileBodies.length)] ?? "");
    },
  },
};

async function post(path: string, headers: Record<string, string>, body: string): Promise<void> {
  const sent = { ...headers, "content-type": "application/json" };
  await (await fetch(url + path, { method: "POST", headers: sent, body })).text();
}

async function sendHalf(): Promise<void> {
  const client = await connectRaw(url);
  const head = ["POST /api/login HTTP/1.1", "Host: x", `X-Forwarded-For: ${address()}`, "Content-Length: 5000"];
  client.send(`${head.join("\r\n")}\r\nContent-Type: application/json\r\n\r\n{"u`);
  await Bun.sleep(1000);
  client.close();
}

// Also if the program leaves a request without a response.
setTimeout(() => process.exit(1), Number(durationMs) + 20_000).unref();
const endsAt = performance.now() + Number(durationMs);
const sent: Record<string, number> = {};
await Promise.all(
  Object.entries(attacks).flatMap(([name, { connections, restMs, send }]) =>
    Array.from({ length: connections }, async () => {
      while (performance.now() < endsAt) {
        // Refusals and resets are what an attacker may get.
        await send().catch(() => {});
        sent[name] = (sent[name] ?? 0) + 1;
        await Bun.sleep(restMs);
      }
    }),
  ),
);
process.stdout.write(JSON.stringify(sent));
