import { expect, test } from "bun:test";
import { ProxyError } from "../../../src/proxy/errors.ts";
import { modelOfForm, readFormModel } from "../../../src/proxy/request/form-model.ts";

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

const model = field('"model"', "m");
const audio = `--b\r\nContent-Disposition: form-data; name="file"; filename="a \\"b\\"; c.wav"\r\n\r\n${"x".repeat(70_000)}\r\n`;
const formData = "multipart/form-data; boundary=b";
const part = (head: string): string => `--b\r\n${head}\r\n\r\nm\r\n`;
const named = 'Content-Disposition: form-data; name="model"';

/** @returns the model, or what is not allowed */
function strictModel(form: string, contentType: string): string | undefined {
  try {
    return modelOfForm(contentType, new Uint8Array(Buffer.from(form)));
  } catch (error) {
    return error instanceof ProxyError ? `not ${error.details?.members?.["param"]}` : String(error);
  }
}

test.each<[name: string, form: string, model: string | undefined, contentType?: string]>([
  ["is one of its fields", audio + field("language", "ko") + model + end, "m"],
  ["has no quotes, as .NET writes it", field("model", "m") + end, "m"],
  ["is text in UTF-8", part(`Content-Type: text/plain; charset=utf-8\r\n${named}`) + end, "m"],
  ["is missing", audio + field("models_", "x") + field("my-model", "x") + end, undefined],
  ["is empty", field('"model"', "") + end, ""],
  ["has a quoted boundary", model + end, "m", 'multipart/form-data; charset=UTF-8; boundary="b"'],
  ["ends without a line feed", model + "--b--", "m"],
  ["is named twice", model + model + end, "not model"],
  ["is named twice, once in capitals", model + field('"Model"', "x") + end, "not model"],
  ["has a filename", part(`${named}; filename="a.txt"`) + end, "not model"],
  [
    "is quoted-printable, which Go decodes",
    part(`${named}\r\nContent-Transfer-Encoding: quoted-printable`) + end,
    "not model",
  ],
  ["is in another charset", part(`${named}\r\nContent-Type: text/plain; charset=utf-16`) + end, "not model"],
  ["stands beside one for SGLang", model + field('"lora_path"', "x") + end, "not lora_path"],
  ["is named in a filename too", audio.replace("; c", "; name=c") + model + end, "not boundary"],
  ["has two names", part(`Content-Disposition: form-data; name="x"; name="model"`) + end, "not boundary"],
  [
    "has a second name as RFC 2231 has it",
    part(`Content-Disposition: form-data; name="x"; name*=utf-8''model`) + end,
    "not boundary",
  ],
  ["has an escape in its name", part(`Content-Disposition: form-data; name="mod\\el"`) + end, "not boundary"],
  ["has two dispositions", part(`Content-Disposition: form-data; name="x"\r\n${named}`) + end, "not boundary"],
  ["has no disposition", part("Content-Type: text/plain") + end, "not boundary"],
  ["is folded", part('Content-Disposition: form-data;\r\n name="model"') + end, "not boundary"],
  ["stands behind a bare line feed", part(`X: y\n${named}`) + end, "not boundary"],
  ["stands before its start", `x\r\n${model}${end}`, "not boundary"],
  ["stands behind its end", model + end + model, "not boundary"],
  ["has the boundary in its value", field('"model"', "m--bx") + end, "not boundary"],
  ["has the boundary behind a bare line feed", field('"model"', "m\n--b\r\n") + end, "not boundary"],
  ["has no end", model, "not boundary"],
  ["has blanks behind the boundary", model.replace("--b", "--b ") + end, "not boundary"],
  ["comes after 63 parts", field("x", "y").repeat(63) + model + end, "m"],
  ["comes after 64 parts", field("x", "y").repeat(64) + model + end, "not boundary"],
  ["comes after a long head", part(`X-Y: ${"y".repeat(65_400)}\r\n${named.replace("model", "x")}`) + model + end, "m"],
  [
    "comes after a head that is too long",
    part(`X-Y: ${"y".repeat(65_600)}\r\n${named.replace("model", "x")}`) + model + end,
    "not boundary",
  ],
  ["has two boundaries", model + end, "not boundary", "multipart/form-data; boundary=b; boundary=c"],
  ["has two boundaries in two ways", model + end, "not boundary", "multipart/form-data; boundary=b; boundary*=c"],
  ["has another boundary", model + end, "not boundary", "multipart/form-data; boundary=c"],
  ["has no boundary", model + end, "not boundary", "multipart/form-data"],
  ["has another charset", model + end, "not boundary", "multipart/form-data; charset=utf-7; boundary=b"],
  ["is no form", model + end, "not boundary", "multipart/mixed; boundary=b"],
  ["has two types", model + end, "not boundary", "multipart/form-data; boundary=b, multipart/form-data; boundary=c"],
])("of a form that is read for a key's models, the one that %s", (_, form, expected, contentType = formData) => {
  expect(strictModel(form, contentType)).toBe(expected);
});
