import type { Hash } from "../json/known-blocks.ts";
import { readRequestedLanguage, type RequestedLanguage } from "./requested-language.ts";

export interface ConversationMessage {
  role: string;
  text: string;
  /** What the text is decoded from, which is not empty then; it is decoded only where nothing is known of it. */
  raw?: RawText;
}

/** A text as it came. */
interface RawText {
  /** In bytes. */
  length: number;
  /** Undefined if it is so long that only a part of it is decoded. */
  parts: readonly Uint8Array[] | undefined;
}

/** `requested`: the response needs Chinese or Japanese although the user writes another language. */
type ConversationLanguage = "chinese" | "japanese" | "requested" | "neither";

/** How many characters of a text are read. */
export interface Sample {
  head: number;
  tail: number;
}

/**
 * Only a sample of a long conversation is read, so that the cost is bounded: head and tail of each of the user's latest
 * messages, until the budget is spent. Short messages cost little, so that many of them do not hide what came before.
 */
export const userSample: Sample = { head: 1000, tail: 500 };
const userBudget = 6 * (userSample.head + userSample.tail);
const minSampleCost = 100;
/** No more messages of the user are read, not counting empty ones. */
export const maxUserMessages = userBudget / minSampleCost;
/** Larger, because a line about the language may be deep in an operator's prompt. */
export const systemSample: Sample = { head: 4000, tail: 2000 };
const maxSystemMessages = 2;

/**
 * Whatever is written in the two languages, and a part of every name of them and their scripts. A conversation without
 * any match is neither, and these searches take a tenth of the time of `languageOf`. Two, because one takes three times
 * as long.
 */
const outsideAscii = /[\u0080-\uffff]/;
const namePart =
  /chin|cines|japan|japon|giappon|ja-jp|zh-|simplified|traditional|mandarin|cantonese|hanzi|kanji|[kg]ana/i;
/** Longer conversations have many turns: `languageOf` knows most of them. */
const maxPlainLength = 8_000;

/** What was found out about the sample of a text. */
export interface Reading {
  /** The length of the sample as it was read, in characters. */
  length: number;
  request: RequestedLanguage;
  /** Undefined until it is needed. */
  writing?: Writing;
}

/** @returns what is known about a message's sample of this size, or else what `read` finds out */
export type Recall = (message: ConversationMessage, size: Sample, read: () => Reading) => Reading;

const readAnew: Recall = (_message, _size, read) => read();

/**
 * Agents send their system prompt and earlier turns again with each turn; reading them took half the time that such a body
 * took. No text is kept, and a reading is a pure function of its text; of two texts with the same hash, which only somebody
 * who searches finds, one gets the other's.
 * @param capacity at least this many readings are kept, and at most twice as many; one takes some 150 bytes
 */
export function createRecall(hash: Hash, capacity = 20_000): Recall {
  let recent = new Map<number, Reading>();
  let older = recent;
  return (message, size, read) => {
    const name = nameOf(message, size, hash);
    const known = recent.get(name);
    if (known !== undefined) return known;
    const reading = older.get(name) ?? read();
    if (recent.size >= capacity) {
      older = recent;
      recent = new Map();
    }
    recent.set(name, reading);
    return reading;
  };
}

/** More is read of a system prompt than of the same text of a user, and a text is not what it is decoded from. */
function nameOf(message: ConversationMessage, size: Sample, hash: Hash): number {
  const parts = message.raw?.parts;
  if (parts === undefined) return hash(partsOf(message.text, size).join("\n"), 2 * size.head);
  let name = 2 * size.head + 1;
  for (const part of parts) name = hash(part, name);
  return name;
}

/** Whether to add the Han guard: the conversation is neither Chinese nor Japanese and requests neither. */
export function discouragesHan(conversation: readonly ConversationMessage[], recall?: Recall): boolean {
  let length = 0;
  for (const message of conversation) length += message.raw?.length ?? message.text.length;
  let isPlain = length <= maxPlainLength;
  for (const message of isPlain ? conversation : [])
    isPlain &&= !outsideAscii.test(message.text) && !namePart.test(message.text);
  return isPlain || languageOf(conversation, recall) === "neither";
}

/**
 * Decided by the user's latest message that is long enough to show its language. Of earlier messages only lasting
 * requests count, of system prompts only requests.
 */
export function languageOf(
  conversation: readonly ConversationMessage[],
  recall: Recall = readAnew,
): ConversationLanguage {
  let latest: (() => string) | undefined;
  let written: Writing = "unclear";
  for (const { reading, plain } of userTexts(conversation, recall)) {
    latest ??= plain;
    const { request } = reading;
    if (request.lasting || written === "unclear") {
      if (request.language === "chinese or japanese") return "requested";
      if (request.language === "another") return "neither";
    }
    if (written === "unclear") {
      reading.writing ??= writingOfMessage(plain());
      written = reading.writing;
    }
    if (written === "chinese" || written === "japanese") return written;
  }
  // There are only short messages: decide by the latest.
  if (written === "unclear") written = writingOf(latest?.() ?? "");
  if (written === "chinese" || written === "japanese") return written;
  return systemTexts(conversation, recall).some(requestsEither) ? "requested" : "neither";
}

const requestsEither = ({ reading }: ReadText): boolean => reading.request.language === "chinese or japanese";

interface ReadText {
  reading: Reading;
  plain: () => string;
}

function readText(message: ConversationMessage, size: Sample, recall: Recall): ReadText {
  let found: string | undefined;
  const plain = (): string => (found ??= plainOf(message.text, size));
  const read = (): Reading => ({ length: plain().length, request: readRequestedLanguage(plain()) });
  return { reading: recall(message, size, read), plain };
}

/** Latest first. */
function* userTexts(conversation: readonly ConversationMessage[], recall: Recall): Generator<ReadText> {
  let budget = userBudget;
  for (let index = conversation.length - 1; index >= 0 && budget > 0; index -= 1) {
    const message = conversation[index];
    if (message?.role !== "user" || (message.raw === undefined && message.text === "")) continue;
    const text = readText(message, userSample, recall);
    budget -= Math.max(minSampleCost, text.reading.length);
    yield text;
  }
}

const systemTexts = (conversation: readonly ConversationMessage[], recall: Recall): ReadText[] =>
  conversation
    .slice(0, maxSystemMessages)
    .filter((message) => message.role === "system" || message.role === "developer")
    .map((message) => readText(message, systemSample, recall));

const partsOf = (text: string, { head, tail }: Sample): string[] =>
  text.length <= head + tail ? [text] : [text.slice(0, head), text.slice(-tail)];

/** Replaces compatibility forms (fullwidth Latin, halfwidth kana, Kangxi radicals) by plain letters. */
function plainOf(text: string, size: Sample): string {
  const parts = partsOf(text, size);
  const sample = parts.map((part) => (part.includes(noteEnd) ? part.replace(agentNote, " ") : part)).join("\n");
  // One compatibility character may become eighteen.
  const plain = sample.normalize("NFKC").slice(0, size.head + size.tail);
  return plain.replace(/[^\S\n]{2,}|[^\S\n ]/gu, " ").replace(code, " ");
}

/** The end of either tag of an `agentNote`. */
const noteEnd = "system-reminder>";

/** Coding agents add these before and after the user's own words; the sample may lack either tag. */
const agentNote = /^(?:(?!<system-reminder>)[^])*<\/system-reminder>|<system-reminder>[^]*?(?:<\/system-reminder>|$)/gu;

/** Fenced and inline code, tags and URLs, which do not show the user's language. */
const code = /```[^]*?(?:```|$)|`[^`\n]*`|<[^<>\n]{1,200}>|\bhttps?:\/\/[!-~]+/gu;

/** Unfenced comments, statements, stack traces and error lines; not "convert this: {…}". */
const codeLine =
  /^(?: *(?:\/\/|#|\/\*|<!--|--|at |File "|Traceback|\d{4}-\d\d-\d\d[T ]|[\w.]*(?:Error|Exception|Warning)\b)[^\n]*|(?![^\n]*[^"]: ?[[{])[^\n]*(?:[;{}]|=>|\(\):?) *)$/gmu;

const codeLineAt = new RegExp(codeLine.source, "muy");

/** Short words that users of any language also type in another. */
const nudge =
  /\b(?:ok(?:ay)?|yes|no|yep|sure|continue|proceed|go on|go ahead|keep going|another one|one more|next|more|again|retry|please|thanks?|thank you|great|good|weiter|continúa|sigue|continua|devam|dalej)\b|продолжай(?:те)?|дальше|계속(?:해\s*(?:줘|주세요)?)?|(?:네|응|넵|좋아요?|감사합니다|고마워요?)(?![가-힣])|继续|繼續|好的|谢谢|謝謝|続けて(?:ください)?|はい|ありがとう/giu;

type Writing = "chinese" | "japanese" | "other" | "unclear";

/** In letters of an alphabet: a shorter message does not change the language of the conversation. */
const minWeight = 9;

/** Without code and nudges. In ASCII, the first line that is neither mostly decides: what follows is not read. */
function writingOfMessage(text: string): Writing {
  if (outsideAscii.test(text)) return writingOf(text.replace(codeLine, "").replace(nudge, " "));
  let letters = 0;
  for (let start = 0; start < text.length && letters < minWeight;) {
    const end = endOfLine(text, start);
    codeLineAt.lastIndex = start;
    if (!codeLineAt.test(text)) letters += countScripts(text.slice(start, end).replace(nudge, " ")).other;
    start = end + 1;
  }
  return letters < minWeight ? "unclear" : "other";
}

function endOfLine(text: string, from: number): number {
  const end = text.indexOf("\n", from);
  return end === -1 ? text.length : end;
}

function writingOf(text: string): Writing {
  const whole = weigh(text);
  if (isSentence(whole) || edgesOf(text).some(isRequest)) {
    return whole.kana > whole.ideographs / 10 ? "japanese" : "chinese";
  }
  return whole.total < minWeight ? "unclear" : "other";
}

/** In letters of an alphabet: an ideograph or a Hangul syllable counts as three, a kana as two. */
interface Weights {
  ideographs: number;
  kana: number;
  total: number;
  /** Has words of Chinese or Japanese grammar, not only names and terms. */
  grammatical: boolean;
  /** Has three consecutive words of other letters, as in a sentence of another language. */
  otherProse: boolean;
}

function weigh(text: string): Weights {
  const letters = countScripts(text);
  const hangul = 3 * letters.hangul;
  const kana = 2 * letters.kana;
  const han = 3 * letters.han;
  const ideographs = hangul > 0 && isHanja(text) ? 0 : han;
  return {
    ideographs,
    kana,
    total: han + kana + hangul + letters.other,
    grammatical: chineseGrammar.test(text) || /\p{Script=Hiragana}/u.test(text),
    otherProse: otherProse.test(text) && !framedInIdeographs.test(text),
  };
}

/** Korean of courts and newspapers may have more hanja than Hangul, but with Korean particles: 過失로, 國會의. */
const isHanja = (text: string): boolean =>
  (text.match(hanjaWithParticle)?.length ?? 0) >= 2 || !spokenChinese.test(text);

const hanjaWithParticle = /\p{Script=Han}\)?(?:은|는|이|가|을|를|의|에|로|으로|와|과|도|만|한|할|하|된|되|인)/gu;

/** Words of grammar that appear in neither names nor hanja. */
const spokenChinese = /[吗嗎呢吧啊们們么麼这這哪你您她它怎谁誰很个给让讓请請喺嘅唔咗佢冇]/u;

const chineseGrammar = new RegExp(`${spokenChinese.source}|[的了什把没沒还還帮幫在写寫之后後就与與都也从從要不]`, "u");

const otherProse =
  /(?<!\p{L})(?:\p{Lowercase}['’\p{L}]* +){2}\p{Lowercase}|(?:\p{Script=Hangul}+ +){2}\p{Script=Hangul}/u;

/** A sentence of another language inside a Chinese or Japanese one is a quotation. */
const framedInIdeographs =
  /^\P{L}*[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}][^]*[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]\P{L}*$/u;

/**
 * Ideographs among other letters are a sentence if they have grammar; without it they are names and terms, unless there
 * is almost nothing else. Technical Chinese has many Latin words, but no Latin sentences.
 */
function isSentence({ ideographs, kana, total, grammatical, otherProse: mixed }: Weights): boolean {
  const minShare = !grammatical ? 0.75 : mixed ? 0.4 : 0.25;
  return ideographs + kana > 3 && (ideographs + kana) / total >= minShare;
}

/** The user's request is before or after pasted text, on its own line or separated by a colon. */
function edgesOf(text: string): string[] {
  const parts = text.split(/[\n:]/u).filter((part) => /\p{L}/u.test(part));
  return parts.length > 1 ? [parts.at(0) ?? "", parts.at(-1) ?? ""] : [];
}

function isRequest(part: string): boolean {
  const { ideographs, kana, total, grammatical } = weigh(part);
  return grammatical && total >= minWeight && (ideographs + kana) / total >= 0.5;
}

/** How many letters a text has of each script. */
interface ScriptCounts {
  /** Ideographs and Bopomofo. */
  han: number;
  kana: number;
  /** Syllables. */
  hangul: number;
  /** Letters of all other scripts. */
  other: number;
}

const [unknown, han, kana, hangul, other, noLetter] = [0, 1, 2, 3, 4, 5];

const patterns: readonly [script: number, pattern: RegExp][] = [
  [han, /[\p{Script=Han}\p{Script=Bopomofo}]/u],
  [kana, /[\p{Script=Hiragana}\p{Script=Katakana}ー]/u],
  [hangul, /\p{Script=Hangul}/u],
  [other, /\p{L}/u],
];

/** Remembers the UTF-16 units seen so far: a look-up takes a tenth of the time of the patterns. */
const scriptOfUnit = new Uint8Array(0x10000);

export function countScripts(text: string): ScriptCounts {
  const counts = new Uint32Array(noLetter + 1);
  for (let at = 0; at < text.length; at += 1) {
    const isPair = isSurrogate(text, at, 0xd800) && isSurrogate(text, at + 1, 0xdc00);
    const script = isPair ? matchScript(text.slice(at, at + 2)) : findScript(text, at);
    counts[script] = (counts[script] ?? 0) + 1;
    if (isPair) at += 1;
  }
  return { han: counts[han] ?? 0, kana: counts[kana] ?? 0, hangul: counts[hangul] ?? 0, other: counts[other] ?? 0 };
}

function findScript(text: string, at: number): number {
  const unit = text.charCodeAt(at);
  const script = scriptOfUnit[unit] ?? unknown;
  if (script !== unknown) return script;
  const matched = matchScript(text.charAt(at));
  scriptOfUnit[unit] = matched;
  return matched;
}

function matchScript(character: string): number {
  return patterns.find(([, pattern]) => pattern.test(character))?.[0] ?? noLetter;
}

function isSurrogate(text: string, at: number, first: number): boolean {
  return (text.charCodeAt(at) & 0xfc00) === first;
}
