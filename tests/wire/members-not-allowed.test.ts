import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { gzipSync } from "node:zlib";
import { type MemberRow, memberRows } from "../../src/proxy/rewrite/members-not-allowed.ts";
import { errorOf, startTollgateWithKeys } from "../support/tollgate-with-keys.ts";
import { shared } from "../support/shared.ts";

const chat = "/v1/chat/completions";
const text = "/v1/completions";
const responses = "/v1/responses";
const batch = "/v1/messages/batches";

const gate = shared(() =>
  startTollgateWithKeys({ PROXY_HAN_GUARD: "off", MAX_OUTPUT_TOKENS: "300", MAX_BODY_BYTES: "200000" }),
);
const keys = new Map<string, string>();
beforeAll(async () => {
  const fields = {
    tokens: { tokens_per_day: 1_000_000_000, allowed_models: null },
    models: { allowed_models: ["m"] },
    others: { requests_per_minute: 100_000, max_concurrency: 100, scope: "inference" },
  };
  for (const [name, rules] of Object.entries(fields)) keys.set(name, (await gate.createKey(rules)).key);
});
beforeEach(() => gate.backend.clear());

const send = (name: string, path: string, body: object | string, headers = {}): Promise<Response> =>
  gate.send(path, body, { key: keys.get(name) ?? gate.key, headers });

/** What the backend got. */
async function received(key: string, path: string, body: string): Promise<string> {
  gate.backend.clear();
  await (await send(key, path, body)).bytes();
  return Buffer.from((await gate.backend.nextRequest()).body()).toString();
}

type Row = [param: string, path: string, body: string];

const prompt = `"model":"m","max_tokens":100`;

const roundTokens: Row[] = [
  ["max_tokens", chat, `{${prompt},"Max_Tokens":5}`],
  ["max_tokens", chat, `{"model":"m","Max_Tokens":5000}`],
  ["max_tokens", chat, `{"model":"m","Max_Tokens":null}`],
  ["max_tokens", chat, `{${prompt},"max_tokenſ":300}`],
  ["max_tokens", chat, `{${prompt},"max_to\u212aens":300}`],
  ["max_tokens", chat, `{"model":"m","max_tokens":300,"max_tokens":5}`],
  ["max_tokens", chat, `{"model":"m","max_tokens":5,"max_tokens":null}`],
  ["max_tokens", chat, `{"model":"m","max_tokens":5,"max_t\\u006fkens":5}`],
  ["max_tokens", text, `{"model":"m","max_tokens":-1}`],
  ["max_tokens", text, `{"model":"m","max_tokens":0}`],
  ["max_tokens", text, `{"model":"m","max_tokens":1.5}`],
  ["max_tokens", text, `{"model":"m","max_tokens":" +3_00.0"}`],
  ["max_tokens", text, `{"model":"m","max_tokens":"-1"}`],
  ["max_tokens", text, `{"model":"m","max_tokens":[9]}`],
  ["max_tokens", "/v1/x", `{"model":"m","max_tokens":true}`],
  ["max_completion_tokens", chat, `{${prompt},"max_completion_tokens":-1}`],
  ["max_completion_tokens", chat, `{${prompt},"Max_Completion_Tokens":9}`],
  ["max_output_tokens", responses, `{"model":"m","max_output_tokens":9,"max_output_tokens":300}`],
  ["max_output_tokens", responses, `{"model":"m","max_output_tokens":-2}`],
  ["n_predict", chat, `{${prompt},"n_predict":5000}`],
  ["n_predict", chat, `{${prompt},"n_predict":-1}`],
  ["n_predict", chat, `{${prompt},"n_pr\\u0065dict":5}`],
  ["n", chat, `{${prompt},"n":4,"n":1}`],
  ["n", chat, `{${prompt},"N":4}`],
  ["n", chat, `{${prompt},"n":"+4"}`],
  ["best_of", text, `{${prompt},"best_of":5,"best_of":2}`],
  ["best_of", text, `{${prompt},"Best_Of":5}`],
  ["n_cmpl", chat, `{${prompt},"n":1,"n_cmpl":4}`],
  ["background", responses, `{"model":"m","input":"Hi","background":true}`],
  ["background", responses, `{"model":"m","input":"Hi","background":true,"background":false}`],
  ["background", responses, `{"model":"m","input":"Hi","background":"yes"}`],
  ["background", responses, `{"model":"m","input":"Hi","background":1}`],
  ["extra_body.max_tokens", chat, `{${prompt},"extra_body":{"max_tokens":300}}`],
  ["extra_body.max_tokens", chat, `{"model":"m","extra_body":{"max_tokens":null}}`],
  ["extra_body.n", chat, `{${prompt},"extra_body":{"top_p":1,"n":2}}`],
  ["extra_body.n_cmpl", chat, `{${prompt},"extra_body":{},"extra_body":{"n_cmpl":2}}`],
  ["extra_body.background", responses, `{"model":"m","extra_body":{"background":true}}`],
  ["requests.params.max_tokens", batch, `{"requests":[{"params":{"max_tokens":1}},{"params":{"max_tokens":-1}}]}`],
  ["requests.params.max_tokens", batch, `{"requests":[{"params":{"max_tokens":1,"max_tokens":9}}]}`],
  ["requests.params.max_tokens", batch, `{"requests":[{"params":{"max_tokens":1,"Max_Tokens":9}}]}`],
  ["requests.params.n_predict", batch, `{"requests":[{"params":{"n_predict":9,"max_tokens":1}}]}`],
];

const roundModels: Row[] = [
  ["model", chat, `{"model":"m","model":"other"}`],
  ["model", chat, `{"model":"m","model":"m"}`],
  ["model", chat, `{"model":"m","MODEL":"other"}`],
  ["model", chat, `{"\\u004dOdel":"other","model":"m"}`],
  ["extra_body.model", chat, `{"model":"m","extra_body":{"model":"other"}}`],
  ["models", chat, `{"model":"m","models":["other"]}`],
  ["models", chat, `{"model":"m","Models":["other"]}`],
  ["extra_body.models", chat, `{"model":"m","extra_body":{"models":["other"]}}`],
  ["fallbacks", chat, `{"fallbacks":["other"],"model":"m"}`],
  ["context_window_fallbacks", "/v1/x", `{"model":"m","context_window_fallbacks":[{"m":["other"]}]}`],
  ["content_policy_fallbacks", chat, `{"model":"m","content_policy_\\u0066allbacks":[{"m":["other"]}]}`],
  ["lora_path", chat, `{"model":"m","lora_path":"other"}`],
  ["requests", batch, `{"model":"m","requests":[{"params":{"model":"other"}}]}`],
];

/** Named as in the table, but deeper, or with a value or in a place that goes round nothing. */
const round = {
  nothing: [
    `{"model":"m","metadata":{"max_tokens":-1,"model":"x","models":[]},"messages":[{"n_predict":9,"Model":"x"}]}`,
    `{"model":"m","extra_body":{"a":{"max_tokens":9,"model":"x"},"temperature":1}}`,
    `{"model":"m","max_tokens":null,"max_completion_tokens":"90","n":"2","best_of":null,"background":false}`,
    `{"model":"m","priority":1,"rid":"x","extra_body":{"cache_salt":"x"}}`,
    `{"model":"m","max_tokens":1e2,"background":"transparent","modes":1,"":2,"max_tokens_":-1,"requests":[]}`,
  ],
};

describe("a key with limits of tokens gets 400 for what goes round them", () => {
  test.each(roundTokens)("%s at %s: %s", async (param, path, body) => {
    const error = await errorOf(await send("tokens", path, body));
    expect(error).toMatchObject({ status: 400, type: "invalid_request_error", code: "member_not_allowed", param });
    expect(error["message"]).toContain(`'${param}'`);
    expect(gate.backend.requests()).toEqual([]);
    for (const key of ["models", "others", "none"]) {
      // The other rule refuses a batch.
      if (key === "models" && path === batch) continue;
      expect(await received(key, path, body)).toStartWith("{");
    }
  });
});

describe("a key with models that it may use gets 400 for what goes round these", () => {
  test.each(roundModels)("%s at %s: %s", async (param, path, body) => {
    const error = await errorOf(await send("models", path, body));
    expect(error).toMatchObject({ status: 400, type: "invalid_request_error", code: "member_not_allowed", param });
    expect(error["message"]).toContain(`'${param}'`);
    expect(gate.backend.requests()).toEqual([]);
    for (const key of ["tokens", "others", "none"]) expect(await received(key, path, body)).toBe(body);
  });
});

test.each(round.nothing)("what is not in the table passes as it came, for every key: %s", async (body) => {
  for (const key of ["tokens", "models", "others", "none"]) expect(await received(key, chat, body)).toBe(body);
});

test("a key without these rules has other spellings of its limit capped as before", async () => {
  for (const key of ["models", "others", "none"]) {
    for (const name of ["Max_Tokens", "n_predict"]) {
      expect(await received(key, chat, `{"model":"m","${name}":99999999}`)).toBe(`{"model":"m","${name}":300}`);
    }
    const extra = (tokens: number) => `{"model":"m","max_tokens":5,"extra_body":{"max_tokens":${tokens},"n":2}}`;
    expect(await received(key, chat, extra(99_999_999))).toBe(extra(300));
  }
});

const path = "/v1/audio/transcriptions";
const form = { "content-type": "multipart/form-data; boundary=b" };
const field = (name: string, value: string): string =>
  `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
const audio = `--b\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\nContent-Type: audio/wav\r\n\r\nRIFF\0\xff\r\n`;
const end = "--b--\r\n";

describe("a form of a key with models that it may use", () => {
  test.each([
    ["that names one of them", audio + field("model", "m") + end],
    ["with other fields, and the model first", field("model", "m") + field("language", "ko") + audio + end],
  ])("%s passes as it came", async (_, body) => {
    const bytes = Buffer.from(body, "latin1");
    expect((await send("models", path, bytes, form)).status).toBe(200);
    const request = await gate.backend.nextRequest();
    expect(Buffer.from(request.body()).equals(bytes)).toBe(true);
    expect([request.header("content-length"), request.header("content-type")]).toEqual([
      String(bytes.length),
      form["content-type"],
    ]);
  });

  test("that an SDK makes passes", async () => {
    const made = new FormData();
    made.set("file", new Blob(["RIFF"]), 'a "b"; 한.wav');
    made.set("model", "m");
    expect((await send("models", path, made)).status).toBe(200);
  });

  test.each([
    ["names another", audio + field("model", "other") + end, 403, "model_not_allowed", null],
    ["names none", audio + end, 403, "model_not_allowed", null],
    ["names two", field("model", "m") + field("model", "other") + end, 400, "member_not_allowed", "model"],
    [
      "names models beside it",
      field("model", "m") + field("fallbacks", "x") + end,
      400,
      "member_not_allowed",
      "fallbacks",
    ],
    ["is not at its end", field("model", "m") + audio, 400, "member_not_allowed", "boundary"],
    ["is larger than may be held", audio + "x".repeat(200_000), 413, "body_too_large", null],
  ])("is refused if it %s", async (_, body, status, code, param) => {
    for (const sent of [body, new Blob([body]).stream()]) {
      const error = await errorOf(await send("models", path, sent, form));
      expect(error).toMatchObject({ status, code, param });
    }
    expect(gate.backend.requests()).toEqual([]);
  });

  test("is refused if it is compressed", async () => {
    const body = gzipSync(field("model", "m") + end);
    const error = await errorOf(await send("models", path, body, { ...form, "content-encoding": "gzip" }));
    expect(error).toMatchObject({ status: 415, code: "unsupported_body" });
  });

  test("passes whatever it names for a key without", async () => {
    const body = field("model", "other") + field("model", "m") + audio;
    for (const key of ["tokens", "others", "none"]) {
      expect([key, (await send(key, path, body, form)).status]).toEqual([key, 200]);
    }
  });
});

test("every row of the table is refused above, in the form that it names", () => {
  const refused = new Set([...roundTokens, ...roundModels].map(([param]) => param));
  const rows = Object.entries<MemberRow>(memberRows).filter(
    ([name, { rule }]) => rule !== "engine" && name !== "boundary",
  );
  expect(rows.filter(([name]) => !refused.has(name))).toEqual([]);
});

describe("a path with a needlessly encoded character", () => {
  const encoded = [
    "/v1/ch%61t/completions",
    "/v1/%63ompletions",
    "/v1/x%2D",
    "/v1/a%2eb",
    "/v1/x%5F",
    "/v1/%7ex",
    "/v1/x%35",
  ];
  test.each([...encoded, "/v1/chat/completions%23", "/v1/%u0063hat/completions"])(
    "is refused at %s",
    async (written) => {
      for (const key of ["tokens", "models"]) {
        const error = await errorOf(await send(key, written, `{"model":"m"}`));
        expect(error).toMatchObject({ status: 400, type: "invalid_request_error", code: "invalid_path" });
      }
      for (const key of ["others", "none"]) expect((await send(key, written, `{"model":"m"}`)).status).not.toBe(400);
    },
  );

  test.each(["/v1/x%2Fy", "/v1/x%20y", "/v1/x%3Ay", "/v1/x%25y", "/v1/x%C3%A9"])("is not %s", async (written) => {
    for (const key of ["tokens", "models"]) expect((await send(key, written, `{"model":"m"}`)).status).not.toBe(400);
  });
});
