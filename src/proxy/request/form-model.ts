import { findMemberName, memberRows } from "../rewrite/members-not-allowed.ts";
import { resumedStream } from "../upstream/resumed-stream.ts";
import { memberNotAllowed } from "./model-rule.ts";

type Bytes = Uint8Array<ArrayBuffer>;

/** How far into a form its model is looked for. */
const maxFormBytes = 64 * 1024;

/**
 * Reads a form until its model is known, and changes nothing.
 * @param read the next chunk; undefined at the end
 */
export async function readFormModel(
  contentType: string,
  reader: ReadableStreamDefaultReader<Bytes>,
  read: () => Promise<Bytes | undefined>,
): Promise<{
  /** From its start, still streamed. */
  body: ReadableStream<Bytes>;
  /** The first field `model`; undefined if the first bytes have none. */
  model: string | undefined;
}> {
  const delimiter = delimiterOf(contentType);
  const chunks: Bytes[] = [];
  if (delimiter === undefined) return { body: resumedStream(chunks, reader), model: undefined };
  let model: string | undefined;
  let [length, searched] = [0, 0];
  let isOver = false;
  while (!isOver && model === undefined) {
    const chunk = await read();
    if (chunk !== undefined && chunk.length > 0) chunks.push(chunk);
    length += chunk?.length ?? 0;
    isOver = chunk === undefined || length >= maxFormBytes;
    // Each search reads the whole of what there is: few of them for a form that comes byte by byte.
    if (!isOver && length < 2 * searched) continue;
    model = findModel(Buffer.concat(chunks).subarray(0, maxFormBytes), delimiter);
    searched = length;
  }
  return { body: resumedStream(chunks, reader), model };
}

function delimiterOf(contentType: string): string | undefined {
  const [, quoted, plain] = /;\s*boundary=(?:"([^"]+)"|([^\s;"]+))/i.exec(contentType) ?? [];
  const boundary = quoted ?? plain;
  return boundary && `--${boundary}`;
}

/** Undefined if there is none yet. */
function findModel(bytes: Buffer, delimiter: string): string | undefined {
  const form = bytes.toString("latin1");
  let at = form.indexOf(delimiter);
  while (at >= 0) {
    const headEnd = form.indexOf("\r\n\r\n", at);
    if (headEnd < 0) return undefined;
    const start = headEnd + 4;
    const end = form.indexOf(`\r\n${delimiter}`, start);
    if (end < 0) return undefined;
    if (isModelField(form.slice(at, headEnd))) return bytes.subarray(start, end).toString();
    at = end + 2;
  }
  return undefined;
}

const isModelField = (head: string): boolean =>
  /^content-disposition:[^\r\n]*;\s*name=(?:"model"|model(?=\s*(?:;|$)))/im.test(head);

/** Another charset would make other names of the same bytes. */
const strictFormType =
  /^\s*multipart\/form-data\s*;\s*(?:charset="?utf-8"?\s*;\s*)?boundary=(?:"([^"\\]+)"|([^\s;",]+))(?:\s*;\s*charset="?utf-8"?)?\s*$/i;

const maxParts = 64;
const maxHeadBytes = 64 * 1024;

const unclear = () => memberNotAllowed({ name: "boundary" });

/**
 * The field `model` of a whole form, of which no parser may read another.
 * @returns undefined if it has none
 * @throws ProxyError `member_not_allowed` if another parser may, or the form names models beside it
 */
export function modelOfForm(contentType: string, bytes: Bytes): string | undefined {
  const [, quoted, plain] = strictFormType.exec(contentType) ?? [];
  const delimiter = `--${quoted ?? plain}`;
  const form = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if ((quoted ?? plain) === undefined || form.indexOf(delimiter) !== 0) throw unclear();
  let model: string | undefined;
  let start = delimiter.length;
  for (let parts = 0; !isEnd(form, start); parts += 1) {
    const headEnd = form.indexOf("\r\n\r\n", start);
    const next = form.indexOf(delimiter, start);
    const isPart = parts < maxParts && isLineEnd(form, start) && headEnd >= 0 && headEnd - start <= maxHeadBytes;
    if (!isPart || next - 2 < headEnd + 4 || !isLineEnd(form, next - 2)) throw unclear();
    if (namesModel(form.toString("utf8", start + 2, headEnd))) {
      if (model !== undefined) throw memberNotAllowed({ name: "model" });
      model = form.toString("utf8", headEnd + 4, next - 2);
    }
    start = next + delimiter.length;
  }
  return model;
}

const isLineEnd = (form: Buffer, at: number): boolean => form[at] === 0x0d && form[at + 1] === 0x0a;

/** Whether the form ends here. */
const isEnd = (form: Buffer, at: number): boolean =>
  form.length <= at + 4 && /^--(?:\r\n)?$/.test(form.toString("latin1", at));

/** Whether a part is the field `model`, by its head. */
function namesModel(head: string): boolean {
  const lines = head.split("\r\n");
  const [disposition = "", ...more] = lines.filter((line) => /^content-disposition/i.test(line));
  const [, quoted, plain, rest = ""] = strictDisposition.exec(disposition) ?? [];
  const name = quoted ?? plain;
  const isOdd = more.length > 0 || lines.some((line) => /^[ \t]|[\r\n\0]/.test(line)) || /;\s*name\s*[*=]/i.test(rest);
  if (name === undefined || isOdd) throw unclear();
  const found = findMemberName(Buffer.from(name), 0, Buffer.byteLength(name));
  if (found === undefined || memberRows[found].rule !== "models") return false;
  const isPlainField = rest === "" && lines.every((line) => line === disposition || plainHeader.test(line));
  if (name !== "model" || !isPlainField) throw memberNotAllowed({ name: found });
  return true;
}

const strictDisposition = /^content-disposition:\s*form-data;\s*name=(?:"([^"\\]*)"|([^\s;"\\]+))(;.*)?$/i;

/** Some parsers decode what has a transfer encoding. */
const plainHeader = /^content-(?:length:\s*\d+|type:\s*text\/plain(?:;\s*charset="?utf-8"?)?)\s*$/i;
