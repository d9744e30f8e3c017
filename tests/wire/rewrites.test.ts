import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import type { SimulatedRequest } from "../support/simulator/request.ts";
import { type Simulator, startSimulator } from "../support/simulator/simulator.ts";
import { pollUntil } from "../support/poll-until.ts";
import { recordings } from "../support/recorded-requests.ts";
import { startTollgate, type Tollgate } from "../support/tollgate.ts";

const live = "Org/Live-Model";
const family = "Org/Family";

let backend: Simulator;
const gates = new Map<string, Tollgate>();
const settings: Record<string, Record<string, string>> = {
  "live alias unset": { PROXY_FAMILY_MODEL: family },
  "live alias set": { PROXY_ALIAS_MODEL: live, PROXY_FAMILY_MODEL: family },
  "rewrite-all": { PROXY_ALIAS_MODEL: live, PROXY_FAMILY_MODEL: family, PROXY_ALIAS_REWRITE_ALL: "on" },
  "family live": { PROXY_ALIAS_MODEL: family, PROXY_FAMILY_MODEL: family.toUpperCase() },
  "family live, rewrite-all": { PROXY_ALIAS_MODEL: family, PROXY_FAMILY_MODEL: family, PROXY_ALIAS_REWRITE_ALL: "on" },
  "client rules": { CLIENT_RULES: "auto" },
  "han guard": { PROXY_HAN_GUARD: "on" },
  "small caps": { MAX_CONTEXT_TOKENS: "1000", MAX_OUTPUT_TOKENS: "300" },
};
beforeAll(async () => {
  backend = startSimulator({ models: [family, live] });
  for (const [name, environment] of Object.entries(settings)) {
    gates.set(name, await startTollgate({ PROXY_UPSTREAM_URL: backend.url, PROXY_HAN_GUARD: "off", ...environment }));
  }
  // It answers once the backend was asked what it is.
  await gateOf("client rules").admin.expectOk("GET", "/api/client-rules");
});
afterAll(async () => {
  for (const gate of gates.values()) await gate[Symbol.asyncDispose]();
  backend.stop();
});

function gateOf(name: string): Tollgate {
  const gate = gates.get(name);
  if (gate === undefined) throw new Error(`No server with ${name}`);
  return gate;
}

/** Sends a body. @returns the body that the backend receives */
async function received(
  setting: string,
  path: string,
  body: object | string,
  headers: Record<string, string> = {},
): Promise<string> {
  const gate = gateOf(setting);
  backend.clear();
  await (await gate.send(path, body, { headers })).text();
  let sent = await backend.nextRequest();
  // With client rules, the backend is asked what it is.
  while (sent.method !== "POST") sent = await backend.nextRequest();
  return Buffer.from(sent.body()).toString();
}

const messages = [{ role: "user", content: "Hi" }];
const conversations = ["/v1/chat/completions", "/v1/messages"];
const paths = [...conversations, "/v1/responses"];

describe("with CLIENT_RULES=auto", () => {
  const system = '[{"type":"text","text":"x-anthropic-billing-header: a"}, {"type":"text","text":"You"}]';
  const turns = '[{"role":"user","content":"Hi"},{"role":"system","content":"s"}]';
  const body = `{"model":"${live}","max_tokens":10, "system": ${system},"messages":${turns}}`;

  test("what Claude Code sends is mended for vLLM", async () => {
    const sent = body.replace(/\{"type":"text","text":"x-[^}]*\}, /, "").replace('"role":"system"', '"role":"user"');
    expect(
      await received("client rules", "/v1/messages", body, { "user-agent": "claude-cli/2.1.330 (external, cli)" }),
    ).toBe(sent);
  });

  test("what another client sends arrives as it came", async () => {
    expect(await received("client rules", "/v1/messages", body, { "user-agent": "curl/8.5.0" })).toBe(body);
    expect(await received("live alias unset", "/v1/messages", body, { "user-agent": "claude-cli/2.1.330" })).toBe(body);
  });
});

/** What the log says was edited. */
const rulesOf: Readonly<Record<string, string | undefined>> = {
  "Claude Code": "system_turns_to_user, drop_billing_line",
  Codex: "developer_to_system, function_tools_only",
  opencode: undefined,
};

describe.each(recordings)("a backend with a strict template", ({ program, requests }) => {
  const statuses = async (setting: string): Promise<number[]> => {
    const gate = gateOf(setting);
    const found: number[] = [];
    for (const { path, userAgent, body } of requests) {
      const sent = { script: "strict;tokens=3", headers: { "user-agent": userAgent } };
      const response = await gate.send(path, { ...body, model: live }, sent);
      await response.text();
      found.push(response.status);
    }
    return found;
  };

  test(`takes what ${program} sends with CLIENT_RULES=auto, and only opencode's without`, async () => {
    const { log } = gateOf("client rules");
    const before = log.length;
    expect(await statuses("client rules")).toEqual(requests.map(() => 200));
    const logged = await pollUntil(() => {
      const ended = log.slice(before).filter(({ message }) => message === "Request ended");
      return ended.length === requests.length && ended;
    });
    const name = program.replace(/ [\d.]+$/, "");
    expect(logged.map(({ clientRules: rules }) => rules)).toEqual(requests.map(() => rulesOf[name]));
    expect((await statuses("live alias unset")).every((status) => status === 200)).toBe(program.startsWith("opencode"));
  });
});

describe("a model's name", () => {
  // One row for each submitted name: the name that the backend receives under each setting; `=` means unchanged.
  const table: [submitted: string, unset: string, set: string, all: string, familyLive: string, familyAll: string][] = [
    ["org/LIVE-model", "=", live, live, "=", family],
    ["org/live-model[1M][1m]", "=", live, live, "=", family],
    ["ORG/family", "=", "=", live, family, family],
    ["org/family-NonThinking", "=", "=", live, family, family],
    ["whatever-nonthink", "=", "=", live, family, family],
    ["claude-opus-4", "=", live, live, family, family],
    ["Anthropic-x[1m]", "=", live, live, family, family],
    ["claudette", "=", "=", live, "=", family],
    ["gpt-4o", "=", "=", live, "=", family],
    ["Gpt-4o[1m]", "=", "=", live, "=", family],
    ["my-claude-1", "=", "=", live, "=", family],
    ["anthropic/claude-3", "=", "=", live, "=", family],
    ["org/family-nonthinkin", "=", "=", live, "=", family],
    ["nonthinking", "=", "=", live, "=", family],
    ["claude-x-nonthinking", "=", live, live, family, family],
  ];
  const columns = ["live alias unset", "live alias set", "rewrite-all", "family live", "family live, rewrite-all"];
  const rows = table.flatMap(([submitted, ...expected]) =>
    columns.map((setting, column): [string, string, string] => {
      const model = expected[column] ?? "=";
      return [submitted, setting, model === "=" ? submitted : model];
    }),
  );

  test.each(rows)("%s, %s, reaches the backend as %s on every path", async (submitted, setting, model) => {
    for (const path of [...paths, "/v1/completions", "/v1/embeddings", "/v1/anything/else"]) {
      expect(JSON.parse(await received(setting, path, { model: submitted })).model).toBe(model);
    }
  });
});

describe("the reasoning mode", () => {
  const high = { thinking: true, reasoning_effort: "high" };
  const max = { thinking: true, reasoning_effort: "max" };
  const off = { thinking: false };
  const table: [model: string, effort: unknown, injected: object][] = [
    [`${family}-nonthinking`, "max", off],
    [`${family.toUpperCase()}-NONTHINKING`, undefined, off],
    ["any-nonthinking", "xhigh", off],
    ["any-nonthink", "low", off],
    [family, "max", max],
    [family, "xhigh", max],
    ["claude-opus-4", "max", max],
    [family, "low", high],
    [family, "medium", high],
    [family, "high", high],
    [family, undefined, high],
    [family, "unheard-of", high],
  ];

  describe.each(paths)("on %s", (path) => {
    test.each(table)("of %s with effort %j is injected as %j", async (model, effort, injected) => {
      const body = { model, messages, ...(effort === undefined ? {} : { output_config: { effort } }) };
      expect(JSON.parse(await received("family live", path, body)).chat_template_kwargs).toEqual(injected);
    });

    test("keeps what the client sets and adds the rest", async () => {
      const kwargs = async (given: object): Promise<unknown> =>
        JSON.parse(await received("family live", path, { model: family, messages, chat_template_kwargs: given }))
          .chat_template_kwargs;
      expect(await kwargs({ thinking: false })).toEqual({ thinking: false, reasoning_effort: "high" });
      expect(await kwargs({ reasoning_effort: null, other: 1 })).toEqual({
        reasoning_effort: null,
        other: 1,
        thinking: true,
      });
      expect(await kwargs({ enable_thinking: false })).toMatchObject({ enable_thinking: false, thinking: false });
    });

    test.each(["live alias unset", "live alias set", "rewrite-all"])("is not set with %s", async (setting) => {
      const body = { model: `${family}-nonthinking`, messages, output_config: { effort: "max" } };
      const sent = await received(setting, path, body);
      expect(JSON.parse(sent)).not.toHaveProperty("chat_template_kwargs");
      expect(sent).not.toContain("effort mode");
    });
  });

  test("leaves the thinking member of a messages request unchanged", async () => {
    const thinking = { type: "enabled", budget_tokens: 2048 };
    const sent = JSON.parse(await received("family live", "/v1/messages", { model: family, messages, thinking }));
    expect(sent.thinking).toEqual(thinking);
    expect(sent.chat_template_kwargs).toEqual(high);
  });

  test("changes no other path", async () => {
    const body = { model: family, prompt: "Hi" };
    expect(JSON.parse(await received("family live", "/v1/completions", body))).toEqual(body);
  });
});

describe("a system prefix", () => {
  test("precedes the client's system text, on both conversation paths", async () => {
    const effort = { output_config: { effort: "max" } };
    const chat = JSON.parse(
      await received("family live", "/v1/chat/completions", {
        model: family,
        messages: [{ role: "system", content: "Be brief." }, ...messages],
        ...effort,
      }),
    );
    expect(chat.messages).toHaveLength(2);
    expect(chat.messages[0].content).toMatch(/^[^]+\n\nBe brief\.$/);
    const bare = JSON.parse(
      await received("family live", "/v1/chat/completions", { model: family, messages, ...effort }),
    );
    expect(bare.messages).toHaveLength(2);
    expect(bare.messages[0].role).toBe("system");
    const blocks = [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }];
    const message = JSON.parse(
      await received("family live", "/v1/messages", { model: family, messages, system: blocks, ...effort }),
    );
    expect(message.system).toHaveLength(2);
    expect(message.system[1]).toEqual(blocks[0]);
  });

  test.each(conversations)("against ideographs is added only to conversations that need none, on %s", async (path) => {
    const sent = async (content: string): Promise<string> =>
      received("han guard", path, { model: "m", messages: [{ role: "user", content }] });
    expect(await sent("Tell me about rivers in Europe.")).toMatch(/ideograph|Han|Chinese character/i);
    expect(await sent("대한민국의 강에 대해 알려 줘.")).toMatch(/ideograph|Han|Chinese character/i);
    expect(await sent("请介绍一下欧洲的河流。")).not.toMatch(/ideograph/i);
    expect(await sent("ヨーロッパの川について教えてください。")).not.toMatch(/ideograph/i);
    expect(await sent("Translate 'river' into Chinese, please.")).not.toMatch(/ideograph/i);
  });
});

describe("a cap", () => {
  test.each(["max_tokens", "max_completion_tokens", "max_output_tokens"])("applies to %s", async (name) => {
    const cap = async (value: unknown, padding = ""): Promise<unknown> =>
      JSON.parse(await received("small caps", "/v1/chat/completions", { model: "m", padding, [name]: value }))[name];
    expect(await cap(100)).toBe(100);
    expect(await cap(5000)).toBe(300);
    expect(await cap(300)).toBe(300);
    const padding = "x".repeat(900);
    const length = JSON.stringify({ model: "m", padding, [name]: 300 }).length;
    expect(await cap(300, padding)).toBe(1000 - Math.floor(length / 3) - 512);
    expect(await cap(300, "x".repeat(3000))).toBe(1);
    expect(await cap("5000")).toBe("300");
    for (const value of ["299", "5e3", null, -5, 0, 1.5, [5000]]) expect(await cap(value)).toEqual(value);
  });
});

describe("a cap that is not above a thinking budget", () => {
  const thinking = { type: "enabled", budget_tokens: 399 };
  const send = async (maxTokens: number, path = "/v1/messages"): Promise<[sent: number, left: number]> => {
    const body = JSON.stringify({ model: "m", messages, max_tokens: maxTokens, thinking });
    const sent = await received("small caps", path, body);
    expect(JSON.parse(sent)).toMatchObject({ thinking });
    return [JSON.parse(sent).max_tokens, 1000 - 512 - Math.floor(body.length / 3)];
  };

  test("yields to it on /v1/messages, but for the context's bound", async () => {
    expect(await send(400)).toEqual([400, expect.any(Number)]);
    const [sent, left] = await send(5000);
    expect(sent).toBe(left);
    expect(left).toBeGreaterThan(399);
  });

  test("applies elsewhere", async () => {
    expect((await send(400, "/v1/chat/completions"))[0]).toBe(300);
  });
});

describe("a JSON body", () => {
  const heads: [string, Record<string, string>][] = [
    ["no type", {}],
    ["an empty type", { "content-type": "" }],
    ["a type in capitals", { "content-type": "Application/JSON; Charset=UTF-8" }],
    ["the identity encoding", { "content-type": "application/json", "content-encoding": "identity" }],
    ["a wrong encoding", { "content-type": "application/json", "content-encoding": "gzip" }],
  ];
  test.each(heads)("with %s is capped too", async (_, headers) => {
    const gate = gateOf("small caps");
    backend.clear();
    const response = await fetch(`${gate.url}/v1/completions`, {
      method: "POST",
      headers: { "x-api-key": gate.key, ...headers },
      body: new TextEncoder().encode('{"max_tokens":5000}'),
    });
    await response.text();
    const request = await backend.nextRequest();
    expect(Buffer.from(request.body()).toString()).toBe('{"max_tokens":300}');
    expect(request.header("content-type") ?? "").toBe(headers["content-type"] ?? "");
  });
});

describe("every other byte", () => {
  test("stays unchanged, whatever JSON allows", async () => {
    const text = `  {\n "seed" : 12345678901234567890, "t":1.0 ,"e":1E400, "u":"\\u00e9\\/é", "a":[ 1 ,2], "model":"gpt-4o","__proto__":{"x":1},\t"max_tokens" : 99999999 }\r\n`;
    expect(await received("rewrite-all", "/v1/completions", text)).toBe(
      text.replace('"gpt-4o"', `"${live}"`).replace("99999999", "16384"),
    );
  });

  test("stays unchanged if no rule applies", async () => {
    const text = `\n{"model":"m","model2":"claude-x","messages":[],"n":1e0}\n`;
    expect(await received("live alias set", "/v1/chat/completions", text)).toBe(text);
  });
});

describe("a long body", () => {
  const padding = "漢😀 ".repeat(100_000);
  const send = async (setting: string, text: string): Promise<[response: Response, sent: SimulatedRequest]> => {
    backend.clear();
    const response = await gateOf(setting).send("/v1/completions", text);
    await response.text();
    return [response, await backend.nextRequest()];
  };

  test.each(["small caps", "live alias unset"])("is rewritten and has its own length (%s)", async (setting) => {
    const text = `{"model":"${live}","prompt":"${padding}","max_tokens":99999}`;
    const [response, request] = await send(setting, text);
    expect(response.status).toBe(200);
    const sent = Buffer.from(request.body());
    expect(sent.toString() === text.replace("99999", setting === "small caps" ? "1" : "16384")).toBe(true);
    expect(request.header("content-length")).toBe(String(sent.length));
    expect(request.header("transfer-encoding")).toBeUndefined();
  });

  test("that needs no rewrite arrives as it is", async () => {
    const text = `{"model":"${live}","prompt":"${padding}"}`;
    const [response, request] = await send("rewrite-all", text);
    expect(response.status).toBe(200);
    expect(Buffer.from(request.body()).toString() === text).toBe(true);
  });
});

describe("a body that is refused", () => {
  const refused = async (body: string | Uint8Array<ArrayBuffer>, path = "/v1/chat/completions") => {
    backend.clear();
    const response = await gateOf("rewrite-all").send(path, body);
    const { error } = (await response.json()) as { error?: { type: string; code: string } };
    return [response.status, error?.type, error?.code, backend.requests().length];
  };
  const answer = [400, "invalid_request_error", "invalid_json", 0];

  test("repeats a member more than 64 times", async () => {
    for (const name of ["model", "max_tokens"]) {
      expect(await refused(`{${`"${name}":1,`.repeat(65)}"x":1}`)).toEqual(answer);
      expect(await refused(`{${`"${name}":1,`.repeat(500_000)}"x":1}`)).toEqual(answer);
    }
  });

  test("is UTF-16", async () => {
    expect(await refused(Buffer.from('{"model":"m"}', "utf16le"))).toEqual(answer);
  });
});

describe("the list of models", () => {
  const get = (setting: string, path: string): Promise<Response> => gateOf(setting).send(path);

  test("ends with the synthetic model if the reasoning model is served", async () => {
    const { data } = (await (await get("family live", "/v1/models")).json()) as { data: { id: string }[] };
    expect(data.map(({ id }) => id)).toEqual([family, live, `${family.toUpperCase()}-nonthinking`]);
  });

  const respondWith = (body: string, status = 200): void =>
    backend.handle((_, wire) => {
      const head = `HTTP/1.1 ${status} X\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n`;
      wire.write(head + body);
      wire.end();
    });
  afterEach(() => backend.handle(undefined));
  const empty = '{"object":"list","data":[]}';

  test("has the synthetic model's time in seconds, if the backend lacks the reasoning model", async () => {
    respondWith(empty);
    const { data } = (await (await get("family live", "/v1/models")).json()) as { data: { created: number }[] };
    expect(Math.abs((data[0]?.created ?? 0) - Date.now() / 1000)).toBeLessThan(60);
  });

  test.each([
    ["GET", 201],
    ["GET", 404],
    ["POST", 200],
  ])("is the backend's own in the response to a %s with %i", async (method, status) => {
    respondWith(empty, status);
    const response = await gateOf("family live").send("/v1/models", method === "POST" ? {} : undefined, { method });
    expect([response.status, await response.text()]).toEqual([status, empty]);
  });

  test("above 4 MiB passes as it is, and where the reasoning model is not served it is not even held", async () => {
    const long = `{"object":"list","data":[${"{},".repeat(2_000_000)}{}]}`;
    respondWith(long);
    expect((await (await get("family live", "/v1/models")).text()) === long).toBe(true);
    backend.handle((_, wire) => {
      wire.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n[");
    });
    const client = await gateOf("live alias set").sendRaw("/v1/models");
    expect(await client.bodyContaining("[")).toBe("[");
    client.reset();
  });

  test("is the backend's list otherwise", async () => {
    const direct = await (await fetch(`${backend.url}/v1/models`)).text();
    expect(await (await get("live alias set", "/v1/models")).text()).toBe(direct);
  });

  test("has an entry for the synthetic model, whose name is case-insensitive", async () => {
    for (const name of [`${family}-nonthinking`, encodeURIComponent(`${family}-NonThinking`)]) {
      const response = await get("family live", `/v1/models/${name}`);
      expect(response.status).toBe(200);
      expect(await response.json()).toMatchObject({ id: `${family.toUpperCase()}-nonthinking`, object: "model" });
    }
    expect((await get("live alias set", `/v1/models/${family}-nonthinking`)).status).toBe(404);
  });
});
