import { chat, post, request, ruleSets, streamed, whole } from "./side-cases.ts";
import type { Answer, Case, Sent, World } from "./sides.ts";

/** The cases with a choice of backends, models of a file, and ids that a backend stores. */

export const severalSettings: World["settings"] = ([first = "", second = ""], file) => ({
  MODELS_FILE: file(
    "models.yaml",
    `backends:
  b0: { url: "${first}" }
  b1: { url: "${second}", max_concurrency: 4 }
models:
  m: { backends: [b0], aliases: ["claude-*"] }
  wide: { backends: [b1], max_output_tokens: 50 }
  both: { backends: [b0, b1] }
`,
  ),
  MAX_BODY_BYTES: "1000000",
});

const body = (fields: object): string => JSON.stringify({ model: "m", ...fields });
const usage = { input_tokens: 20, output_tokens: 3, total_tokens: 23 };
const answered = (fields: object): Answer => whole(JSON.stringify({ usage, ...fields }));
const get = (target: string): Sent => ({ bytes: request(`GET ${target} HTTP/1.1`) });
const remove = (target: string): Sent => ({ bytes: request(`DELETE ${target} HTTP/1.1`) });

const stored = (id: string, fields: object = {}): Sent => ({
  ...post("/v1/responses", body({ input: "Hi", ...fields })),
  answer: answered({ id, object: "response", status: "completed" }),
});
const background = (id: string): Sent => ({
  ...post("/v1/responses", body({ input: "Hi", background: true, max_output_tokens: 9 })),
  answer: answered({ id, object: "response", status: "queued", usage: null }),
});
const shown = (id: string): Sent => ({
  ...get(`/v1/responses/${id}`),
  answer: answered({ id, object: "response", status: "completed" }),
});
const byOther = (sent: Sent): Sent => ({ ...sent, byOther: true });

/** By name; each gets ids of its own. */
const sequences: Readonly<Record<string, (id: string) => readonly Sent[]>> = {
  "a response that others ask for": (id) => [stored(id), shown(id), byOther(shown(id)), shown(id)],
  "a response that others go on with": (id) => [
    stored(id),
    byOther({
      ...post("/v1/responses", body({ input: "Hi", previous_response_id: id })),
      answer: answered({ id: `${id}b` }),
    }),
    { ...post("/v1/responses", body({ input: "Hi", previous_response_id: id })), answer: answered({ id: `${id}c` }) },
  ],
  "a response that others cancel and delete": (id) => [
    background(id),
    byOther({ ...post(`/v1/responses/${id}/cancel`, ""), answer: answered({ id }) }),
    byOther({ ...remove(`/v1/responses/${id}`), answer: answered({ id, deleted: true }) }),
    { ...remove(`/v1/responses/${id}`), answer: answered({ id, deleted: true }) },
    shown(id),
  ],
  "work in the background that is read twice": (id) => [background(id), shown(id), shown(id), byOther(shown(id))],
  "work in the background that nobody reads": (id) => [background(id)],
  "an id that two create": (id) => [
    stored(id, { request_id: id }),
    byOther(stored(id, { request_id: id })),
    shown(id),
    byOther(shown(id)),
  ],
  "an id that nobody made": (id) => [shown(id), byOther(shown(id)), shown(id)],
  "an id that is encoded": (id) => [
    stored(id),
    byOther(shown(id.replace("_", "%5F"))),
    byOther(shown(`${id}/`)),
    byOther(shown(`/${id}`)),
  ],
  "a file": (id) => [
    { ...post("/v1/files", "x"), answer: whole(JSON.stringify({ id, object: "file" })) },
    { ...get(`/v1/files/${id}`), answer: whole(JSON.stringify({ id })) },
    byOther({ ...get(`/v1/files/${id}/content`), answer: whole(JSON.stringify({ id })) }),
    byOther({
      ...post("/v1/responses", body({ input: [{ type: "input_file", file_id: id }] })),
      answer: answered({ id: `${id}r` }),
    }),
  ],
  "a batch": (id) => [
    {
      ...post("/v1/batches", body({ input_file_id: `${id}f` })),
      answer: whole(JSON.stringify({ id, output_file_id: `${id}o` })),
    },
    byOther({ ...get(`/v1/batches/${id}`), answer: whole(JSON.stringify({ id })) }),
    byOther({ ...get(`/v1/files/${id}o/content`), answer: whole("{}") }),
    { ...get(`/v1/files/${id}o/content`), answer: whole("{}") },
    { ...get("/v1/batches"), answer: whole(JSON.stringify({ data: [{ id }] })) },
  ],
  "a stream that is stored": (id) => [
    {
      ...post("/v1/responses", body({ input: "Hi", stream: true })),
      answer: whole(
        ["response.created", "response.completed"]
          .map((type) => `event: ${type}\ndata: ${JSON.stringify({ type, response: { id, usage } })}\n\n`)
          .join(""),
        "text/event-stream",
      ),
    },
    byOther(shown(id)),
    shown(id),
  ],
};

const storedCases = (): Case[] =>
  Object.entries(sequences).flatMap(([name, sentOf], number) =>
    Object.entries(ruleSets).map(([rule, rules], at): Case => {
      return { room: "stored ids", name: `${name}, ${rule}`, rules, sent: sentOf(`resp_${number}x${at}`) };
    }),
  );

const models = ["m", "M", "claude-x", "wide", "WIDE", "both", "none", "", "m ", "served"];

const named = (): Case[] =>
  models.flatMap((model) =>
    Object.entries(ruleSets).flatMap(([rule, rules]) =>
      [chat, streamed].map((one): Case => {
        const text = one.replace('"m"', JSON.stringify(model)).replace('"max_tokens":4', '"max_tokens":400');
        const sent = [
          post("/v1/chat/completions", text, ["x-simulate: usage=3,4"]),
          post("/v1/chat/completions", text),
        ];
        return {
          room: "models of a file",
          name: `${model}, ${one === chat ? "whole" : "streamed"}, ${rule}`,
          rules,
          sent,
        };
      }),
    ),
  );

const lists = (): Case[] =>
  ["/v1/models", "/v1/models/", "/v1/models?limit=1", ...models.map((model) => `/v1/models/${model}`)].flatMap(
    (target) =>
      Object.entries(ruleSets).map(([rule, rules]): Case => {
        return { room: "models of a file", name: `GET ${target}, ${rule}`, rules, sent: [get(encodeURI(target))] };
      }),
  );

/** What moves on, and what does not. A backend that fails is soon out, so that these come last. */
const failing = (): Case[] =>
  ["reset-before-head", "close-before-head", "status=503", "status=429", "status=500", "gap=30ms@1; die@1"].flatMap(
    (script) =>
      ["both", "wide"].map((model): Case => {
        const sent = [post("/v1/chat/completions", streamed.replace('"m"', `"${model}"`), [`x-simulate: ${script}`])];
        return { room: "waiting", name: `${script}, ${model}`, sent };
      }),
  );

/** Limits that refuse, one after the other. */
const refused = (): Case[] =>
  [{ requests_per_minute: 1 }, { tokens_per_day: 1 }, { tokens_per_minute: 400 }, { tokens_per_month: 320 }].map(
    (rules): Case => {
      const small = post("/v1/chat/completions", chat, ["x-simulate: usage=150,150"]);
      const sent = [small, small, post("/v1/messages", streamed), get("/v1/models"), get("/v1/tollgate/key")];
      return { room: "waiting", name: `refused by ${JSON.stringify(rules)}`, rules, sent };
    },
  );

export const severalCases = (): Case[] => [...storedCases(), ...named(), ...lists(), ...refused(), ...failing()];
