import { expect, test } from "bun:test";
import { readFormModel } from "../../../src/proxy/request/form-model.ts";

type Bytes = Uint8Array<ArrayBuffer>;

const field = (name: string, value: string): string =>
  `--b\r\nContent-Disposition: form-data; name=${name}\r\n\r\n${value}\r\n`;
const file = (bytes: number): string =>
  `--b\r\nContent-Disposition: form-data; name="file"; filename="model; name=\\"model\\".wav"\r\n` +
  `Content-Type: audio/wav\r\n\r\n${"x".repeat(bytes)}\r\n`;
const end = "--b--\r\n";

/** Reads a form that comes in chunks of so many bytes. @returns its model, and how many chunks were read for it */
async function read(form: string, contentType = "multipart/form-data; boundary=b", chunkBytes = 1000) {
  const bytes: Bytes = Buffer.from(form);
  let at = 0;
  const reader = new ReadableStream<Bytes>(
    {
      pull(controller) {
        if (at >= bytes.length) return controller.close();
        controller.enqueue(bytes.slice(at, (at += chunkBytes)));
      },
    },
    { highWaterMark: 0 },
  ).getReader();
  const { body, model } = await readFormModel(contentType, reader, async () => (await reader.read()).value);
  const readAhead = at;
  expect(await new Response(body).text()).toBe(form);
  return { model, readAhead };
}

test.each<[name: string, form: string, model: string | undefined, contentType?: string]>([
  ["is its first field", field('"model"', "whisper") + file(5000) + end, "whisper"],
  ["comes after a file", file(50_000) + field('"model"', "whisper") + end, "whisper"],
  ["comes after a file that is too long", file(70_000) + field('"model"', "whisper") + end, undefined],
  ["is in UTF-8", field('"model"', "음성/모델") + end, "음성/모델"],
  ["has no quotes", field("model", "whisper") + end, "whisper"],
  ["is named twice", field('"model"', "first") + field('"model"', "second") + end, "first"],
  ["has another name", field('"models"', "whisper") + field('"my-model"', "x") + end, undefined],
  ["is missing", file(10) + end, undefined],
  ["is cut", '--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhis', undefined],
  ["has a quoted boundary", field('"model"', "whisper") + end, "whisper", 'multipart/form-data; boundary="b"; x=1'],
  ["has no boundary", field('"model"', "whisper") + end, undefined, "multipart/form-data"],
  ["is empty", "", undefined],
])("the model of a form whose model %s", async (_, form, model, ...[contentType]) => {
  expect((await read(form, contentType)).model).toBe(model);
});

test("no more of a form is read than its model needs", async () => {
  expect((await read(field('"model"', "whisper") + file(500_000) + end)).readAhead).toBe(1000);
  expect((await read(file(500_000) + end)).readAhead).toBe(66_000);
});

test("a form that comes byte by byte is searched a bounded number of times", async () => {
  const before = process.threadCpuUsage();
  expect((await read(file(60_000) + field('"model"', "whisper") + end, undefined, 1)).model).toBe("whisper");
  const { user, system } = process.threadCpuUsage(before);
  expect((user + system) / 1000).toBeLessThan(2000);
});
