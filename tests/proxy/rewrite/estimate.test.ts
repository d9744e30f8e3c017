import { expect, test } from "bun:test";
import { estimateInput } from "../../../src/proxy/rewrite/tokens.ts";

const base64 = "QUJD".repeat(25_000);
const text = "word ".repeat(60);
const dataUrl = (type: string): string => `data:${type};base64,${base64}`;

const chat = (...content: object[]): object => ({ messages: [{ role: "user", content }] });
const image = { type: "image_url", image_url: { url: dataUrl("image/png"), detail: "high" } };
const audio = { type: "input_audio", input_audio: { data: base64, format: "wav" } };
const source = (media_type: string): object => ({ source: { type: "base64", media_type, data: base64 } });
/** A quarter of what 100,000 characters of base64 hold, as text. */
const fileTokens = Math.floor(75_000 / 4 / 3);

test.each<[string, object, number]>([
  ["an image of chat", chat({ type: "text", text }, image), 1500],
  ["two of them", chat(image, image), 3000],
  ["an image whose address stands alone", chat({ type: "image_url", image_url: dataUrl("image/jpeg") }), 1500],
  ["audio of chat", chat(audio), 3000],
  [
    "a file of chat",
    chat({ type: "file", file: { filename: "a", file_data: dataUrl("application/pdf") } }),
    fileTokens,
  ],
  ["an image of responses", { input: [{ content: [{ type: "input_image", image_url: dataUrl("image/png") }] }] }, 1500],
  [
    "a file of responses",
    { input: [{ content: [{ type: "input_file", file_data: dataUrl("text/plain") }] }] },
    fileTokens,
  ],
  ["an image of messages", chat({ type: "image", ...source("image/webp") }), 1500],
  ["a document of messages", chat({ type: "document", ...source("application/pdf") }), fileTokens],
  [
    "an image that a tool has returned",
    chat({ type: "tool_result", content: [{ type: "image", ...source("image/png") }] }),
    1500,
  ],
  ["audio before other blocks", chat(audio, { type: "text", text }, { type: "text", text }), 3000],
  ["audio of vLLM", chat({ type: "audio_url", audio_url: { url: dataUrl("audio/wav") } }), 3000],
  ["video of vLLM", chat({ type: "video_url", video_url: { url: dataUrl("video/mp4") } }), fileTokens],
  ["an image of the system text of messages", { system: [{ type: "image", ...source("image/png") }] }, 1500],
  [
    "one in a batch of messages",
    { requests: [{ params: { system: [{ type: "image", ...source("image/png") }] } }] },
    1500,
  ],
  ["one in several conversations of vLLM's", { messages: [[{ role: "user", content: [image] }], []] }, 1500],
  ["an image that responses made", { input: [{ type: "image_generation_call", id: "ig_1", result: base64 }] }, 1500],
  [
    "a screenshot",
    {
      input: [
        { type: "computer_call_output", output: { type: "computer_screenshot", image_url: dataUrl("image/png") } },
      ],
    },
    1500,
  ],
  ["a raw file of chat", chat({ type: "file", file: { filename: "a", file_data: base64 } }), fileTokens],
  ["a raw file of responses", { input: [{ content: [{ type: "input_file", file_data: base64 }] }] }, fileTokens],
  ["audio at an address", chat({ type: "image_url", image_url: { url: dataUrl("audio/mp3") } }), 3000],
])("%s counts by its kind", async (_, body, tokens) => {
  const json = JSON.stringify(body);
  const withoutMedia = json.replaceAll(base64, "");
  expect(await estimateInput(Buffer.from(json))).toBe(Math.floor(withoutMedia.length / 3) + tokens);
});

test.each<[string, unknown]>([
  ["an image with an address", chat({ type: "image_url", image_url: { url: "https://a.example/b.png" } })],
  ["base64 in a text", chat({ type: "text", text: dataUrl("image/png") })],
  ["base64 where no dialect has any", { ...chat(), image_url: { url: dataUrl("image/png") } }],
  [
    "a document of messages that is plain text",
    chat({ type: "document", source: { type: "text", media_type: "text/plain", data: base64 } }),
  ],
  ["text that says it is an image", chat({ source: { type: "text", media_type: "image/png", data: base64 } })],
  ["an image of other letters", chat({ type: "image_url", image_url: `data:image/png;base64,${"한".repeat(9000)}` })],
  ["the result of another tool", { input: [{ type: "mcp_call", result: base64 }, { type: "image_generation_call" }] }],
  ["a raw file with blanks", chat({ type: "file", file: { file_data: text } })],
  ["what is no JSON", `{"messages":[{"content":[${JSON.stringify(image)}]`],
  ["an address that is not closed", chat({ type: "image_url", image_url: { url: "data:;base64" } })],
])("%s counts as text", async (_, body) => {
  const json = typeof body === "string" ? body : JSON.stringify(body);
  expect(await estimateInput(Buffer.from(json))).toBe(Math.floor(json.length / 3));
});

test("a long body is read in portions, with the same result", async () => {
  const json = JSON.stringify(
    chat(...Array.from({ length: 9 }, () => image), { type: "text", text: "한".repeat(9000) }),
  );
  const tokens = estimateInput(Buffer.from(json));
  expect(tokens).toBeInstanceOf(Promise);
  expect(await tokens).toBe(Math.floor(json.replaceAll(base64, "").length / 3) + 9 * 1500);
});
