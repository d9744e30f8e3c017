import { contentOf, indexOfBytes, isAscii, isString, latin1, partOf } from "../json/bytes.ts";
import { maxBytesAtOnce, type Party, readJsonInSteps, runByLength, type Steps } from "../json/read.ts";
import { createSlot, type JsonSlot, type Span } from "../json/slots.ts";
import { countCharacters, countCharactersInSteps, estimatedTokens } from "./caps.ts";

/**
 * The estimated input tokens of a body, for limits: its characters as the cap counts them, but images, audio and files by
 * their kind. A megabyte of base64 is one image, and not 350,000 tokens.
 * @returns a promise for a long body
 */
export function estimateInput(bytes: Uint8Array, party?: Party): number | Promise<number> {
  const mayHoldMedia = markers.some((marker) => indexOfBytes(bytes, marker, 0) >= 0);
  // Most bodies are short text, and steps cost more than their characters.
  if (!mayHoldMedia && bytes.length <= maxBytesAtOnce) return estimatedTokens(countCharacters(bytes));
  return runByLength(estimateInSteps(bytes, mayHoldMedia), bytes.length, party);
}

function* estimateInSteps(bytes: Uint8Array, mayHoldMedia: boolean): Steps<number> {
  const characters = yield* countCharactersInSteps(bytes);
  const media = mayHoldMedia ? yield* readMediaInSteps(bytes) : noMedia;
  return estimatedTokens(characters - media.characters) + media.tokens;
}

/** One of these stands in every body that holds media. */
const markers = [";base64,", "input_audio", "media_type", "file_data", "image_generation_call"].map((text) =>
  Buffer.from(text),
);

interface Media {
  tokens: number;
  /** How long its base64 is. */
  characters: number;
}

const noMedia: Media = { tokens: 0, characters: 0 };

const imageTokens = 1500;
const audioTokens = 3000;

function tokensOf(mediaType: string, base64Length: number): number {
  if (mediaType.startsWith("image/")) return imageTokens;
  if (mediaType.startsWith("audio/")) return audioTokens;
  // A quarter of a file is text.
  const decodedBytes = Math.floor((base64Length * 3) / 4);
  return estimatedTokens(Math.floor(decodedBytes / 4));
}

/** Only what stands where the dialects put media counts by its kind: text that looks like it is text to a model. */
function* readMediaInSteps(bytes: Uint8Array): Steps<Media> {
  const media: Media = { ...noMedia };
  const root = createMediaSlots((mediaType, { start, end }) => {
    // Anything else is no base64, and has fewer characters than bytes.
    if (!isAscii(partOf(bytes, start, end))) return;
    const length = end - start;
    media.tokens += tokensOf(mediaType, length);
    media.characters += length;
  });
  const isJson = yield* readJsonInSteps(bytes, root);
  return isJson ? media : noMedia;
}

type Found = (mediaType: string, base64: Span) => void;

/**
 * `image_url`, `input_audio` and `file` of chat, there `audio_url` and `video_url` of vLLM; `image_url` and `file_data` of
 * responses, there the image that a call made or a screenshot shows; `source` of messages, which a batch has in the `params`
 * of its requests.
 */
function createMediaSlots(found: Found): JsonSlot {
  const block = createBlockSlot(found, createSlot({ element: createBlockSlot(found) }));
  const blocks = createSlot({ element: block });
  const output = createSlot({ element: block, members: { image_url: createUrlSlot(found) } });
  const createItem = (element?: JsonSlot): JsonSlot => {
    const [type, result] = [createSlot(), createSlot()];
    const item = createSlot({
      members: { content: blocks, output, type, result },
      ...(element && { element }),
      onValue(bytes) {
        const isImage = item.kind === "object" && isString(bytes, type, "image_generation_call");
        if (isImage && result.kind === "string") found("image/", contentOf(result));
      },
    });
    return item;
  };
  // An element may be a conversation, whose elements are messages.
  const list = createSlot({ element: createItem(createItem()) });
  const params = createSlot({ members: { messages: list, system: blocks } });
  const requests = createSlot({ element: createSlot({ members: { params } }) });
  return createSlot({ members: { messages: list, input: list, system: blocks, requests } });
}

/** @param content of a block that holds others, such as the result of a tool */
function createBlockSlot(found: Found, content: JsonSlot = createSlot()): JsonSlot {
  const audio = createSlot();
  const inputAudio = createSlot({ members: { data: audio } });
  const [type, mediaType, data] = [createSlot(), createSlot(), createSlot()];
  const source = createSlot({ members: { type, media_type: mediaType, data } });
  return createSlot({
    members: {
      image_url: createUrlSlot(found),
      audio_url: createUrlSlot(found),
      video_url: createUrlSlot(found),
      input_audio: inputAudio,
      file: createSlot({ members: { file_data: createDataSlot(found, true) } }),
      file_data: createDataSlot(found, true),
      source,
      content,
    },
    onValue(bytes) {
      // Its members are those of an earlier block if this one has none.
      if (inputAudio.kind === "object" && audio.kind === "string") found("audio/", contentOf(audio));
      // A document may be plain text.
      const isBase64 = source.kind === "object" && isString(bytes, type, "base64");
      if (isBase64 && mediaType.kind === "string" && data.kind === "string") {
        found(latin1(bytes, mediaType.start + 1, mediaType.start + 1 + maxTypeLength), contentOf(data));
      }
    },
  });
}

/** @param mayBeRaw base64 may stand there without `data:` too */
function createDataSlot(found: Found, mayBeRaw = false, members: Readonly<Record<string, JsonSlot>> = {}): JsonSlot {
  const slot = createSlot({ members, onValue: (bytes) => readDataUrl(bytes, slot, found, mayBeRaw) });
  return slot;
}

const createUrlSlot = (found: Found): JsonSlot => createDataSlot(found, false, { url: createDataSlot(found) });

const maxTypeLength = 64;
const blank = Buffer.from(" ");
const base64Mark = ";base64,";

function readDataUrl(bytes: Uint8Array, value: JsonSlot, found: Found, mayBeRaw: boolean): void {
  if (value.kind !== "string") return;
  const { start, end } = contentOf(value);
  const head = latin1(bytes, start, Math.min(end, start + "data:".length + maxTypeLength + base64Mark.length));
  const mark = head.indexOf(base64Mark);
  if (!head.startsWith("data:")) {
    if (mayBeRaw && indexOfBytes(partOf(bytes, start, end), blank, 0) < 0) found("", { start, end });
    return;
  }
  if (mark < 0) return;
  found(head.slice("data:".length, mark), { start: start + mark + base64Mark.length, end });
}
