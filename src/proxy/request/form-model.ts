import { resumedStream } from "../upstream/resumed-stream.ts";

type Bytes = Uint8Array<ArrayBuffer>;

export interface FormBody {
  /** From its start, still streamed. */
  body: ReadableStream<Bytes>;
  /** The first field `model`; undefined if the first bytes have none. */
  model: string | undefined;
}

/** How far into a form its model is looked for. */
const maxFormBytes = 64 * 1024;

/** Each search reads the whole of what there is: no more of them for a form that comes byte by byte. */
const maxSearches = 64;
const bytesForSearch = 1024;

/**
 * Reads a form until its model is known, and changes nothing.
 * @param read the next chunk; undefined at the end
 */
export async function readFormModel(
  contentType: string,
  reader: ReadableStreamDefaultReader<Bytes>,
  read: () => Promise<Bytes | undefined>,
): Promise<FormBody> {
  const delimiter = delimiterOf(contentType);
  const chunks: Bytes[] = [];
  if (delimiter === undefined) return { body: resumedStream(chunks, reader), model: undefined };
  let model: string | undefined;
  let length = 0;
  let [searches, searched] = [0, 0];
  let isOver = false;
  while (!isOver && model === undefined) {
    const chunk = await read();
    if (chunk !== undefined && chunk.length > 0) chunks.push(chunk);
    length += chunk?.length ?? 0;
    isOver = chunk === undefined || length >= maxFormBytes;
    if (!isOver && searches >= maxSearches && length - searched < bytesForSearch) continue;
    model = findModel(Buffer.concat(chunks).subarray(0, maxFormBytes), delimiter);
    searches += 1;
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
