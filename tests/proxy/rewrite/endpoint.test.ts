import { expect, test } from "bun:test";
import { type Endpoint, getEndpoint } from "../../../src/proxy/rewrite/endpoint.ts";

const chat = getEndpoint("/v1/chat/completions");
const other = getEndpoint("/v1/other");

test.each([
  ["/v1/responses", true],
  ["/v1/responses/compact", true],
  ["/v1/batches", true],
  ["/v1/vector_stores/vs_1/file_batches", true],
  ["/v1/anything", true],
  ["/v1/chat/completions", false],
  ["/v1/completions", false],
  ["/v1/embeddings", false],
  ["/v1/messages", false],
  ["/v1/messages/batches", false],
])("bodies of %s may name what is another key's: %p", (path, refers) => {
  expect(getEndpoint(path).refers).toBe(refers);
});

test.each([
  "/v1/chat/completions/",
  "//v1//chat///completions",
  "/v1/chat%2Fcompletions",
  "/v1/chat/%63ompletions",
  // llama.cpp decodes this too.
  "/v1/chat/completion%u0073",
  "/v1/chat%u002Fcompletion%73",
  // nginx takes a segment of one dot out once it has decoded it.
  "/v1/%2E%2Fchat/completions",
  "/v1/chat%2f.%2f%2e%2f/completions",
  "/v1/chat/completions%2F%2e",
  "/v1/chat/completions%2F.%2F",
  // Starlette's patterns end in `$`, which Python finds before a line feed too.
  "/v1/chat/completions%0A",
])("%s is the same endpoint, as for a backend that decodes and merges", (path) => {
  expect(getEndpoint(path)).toBe(chat);
});

test.each([
  "/V1/chat/completions",
  "/v1/Chat/Completions",
  "/v1/chat/completions/x",
  "/chat/completions",
  "/v1/chat/completions%",
  "/v1/chat%252Fcompletions",
  "/v1/chat%25u002Fcompletions",
  "/v1/chat/completion%u73",
  "/v1/.chat/completions",
  "/v1/chat./completions",
  "/v1/chat/%0Acompletions",
  "",
  "/",
])("%s is another endpoint", (path) => {
  expect(getEndpoint(path)).toBe(other);
});

test.each<[path: string, folder: Endpoint["folder"]]>([
  ["/v1/chat/completions", undefined],
  ["/v1/messages", "messages"],
  ["/v1/messages/count_tokens", "messages"],
  ["//v1//messages/batches/", "messages"],
  ["/v1/messagesx", undefined],
  ["/v1/responses", "responses"],
  ["/v1/%72esponses/resp_1", "responses"],
  ["/v1/files/f/content", "files"],
  ["/v1/batches", "batches"],
  ["/v1/models/m", "models"],
  ["/v1/images/generations", undefined],
])("%s is in the folder %s", (path, folder) => {
  expect(getEndpoint(path).folder).toBe(folder);
});
