import { wishIn } from "./requested-language.ts";

export interface ConversationMessage {
  role: string;
  text: string;
}

/** `asked`: the answer needs one of the two languages although the user writes another. */
export type ConversationLanguage = "chinese" | "japanese" | "asked" | "neither";

/**
 * Long conversations are judged by a sample, so that the cost has a ceiling: the head and tail of each of the newest turns
 * of the user, until the budget is spent. Nudges cost little, so that many of them do not hide what they nudge on.
 */
const turnsSeen = 10_000;
const userSample = { head: 1000, tail: 500 };
const userBudget = 6 * (userSample.head + userSample.tail);
const leastCost = 100;
/** Operators bury a line on the language deep in their prompts. */
const systemSample = { head: 4000, tail: 2000 };
const systemTurnsRead = 2;

/**
 * Whatever is not plain ASCII, and in it a piece of every name that either language or its script goes by. A conversation
 * without any is neither, and to see that takes a tenth of the time that judging it does.
 */
const hint =
  /[\u0080-\uffff]|chin|cines|japan|japon|giappon|ja-jp|zh-|simplified|traditional|mandarin|cantonese|hanzi|kanji|[kg]ana/i;
/** Longer conversations are judged by samples, which then costs less. */
const mostSearched = 50_000;

/** True where the Han guard is due: the conversation is neither Chinese nor Japanese and asks for neither. */
export function discouragesHan(conversation: readonly ConversationMessage[]): boolean {
  return isPlain(conversation) || languageOf(conversation) === "neither";
}

function isPlain(conversation: readonly ConversationMessage[]): boolean {
  const length = conversation.reduce((sum, { text }) => sum + text.length, 0);
  return length <= mostSearched && !conversation.some(({ text }) => hint.test(text));
}

/** The user's newest turn that says enough decides; turns before it, and system prompts, count only by what they ask for good. */
export function languageOf(conversation: readonly ConversationMessage[]): ConversationLanguage {
  let newest = "";
  let written: Writing = "unclear";
  for (const text of userTexts(conversation)) {
    newest ||= text;
    const wish = wishIn(text);
    if (wish.lasting || written === "unclear") {
      if (wish.for === "chinese or japanese") return "asked";
      if (wish.for === "another") return "neither";
    }
    if (written === "unclear") written = writingOf(text.replace(codeLine, "").replace(nudge, " "));
    if (written === "chinese" || written === "japanese") return written;
  }
  // Nothing but nudges: they are all there is to judge by.
  if (written === "unclear") written = writingOf(newest);
  if (written === "chinese" || written === "japanese") return written;
  return listSystemTexts(conversation).some(asksForEither) ? "asked" : "neither";
}

const asksForEither = (text: string): boolean => wishIn(text).for === "chinese or japanese";

/** Newest first. */
function* userTexts(conversation: readonly ConversationMessage[]): Generator<string> {
  const oldest = Math.max(0, conversation.length - turnsSeen);
  let budget = userBudget;
  for (let index = conversation.length - 1; index >= oldest && budget > 0; index -= 1) {
    const turn = conversation[index];
    if (turn?.role !== "user" || turn.text === "") continue;
    const text = sampleOf(turn.text, userSample);
    budget -= Math.max(leastCost, text.length);
    yield text;
  }
}

const listSystemTexts = (conversation: readonly ConversationMessage[]): string[] =>
  conversation
    .slice(0, systemTurnsRead)
    .filter((turn) => turn.role === "system" || turn.role === "developer")
    .map((turn) => sampleOf(turn.text, systemSample));

/** Compatibility forms (fullwidth Latin, halfwidth kana, Kangxi radicals) become the plain letters that they stand for. */
function sampleOf(text: string, { head, tail }: { head: number; tail: number }): string {
  const parts = text.length <= head + tail ? [text] : [text.slice(0, head), text.slice(-tail)];
  const sample = parts.map((part) => part.replace(agentNote, " ")).join("\n");
  // One compatibility character may stand for eighteen.
  const plain = sample.normalize("NFKC").slice(0, head + tail);
  return plain.replace(/[^\S\n]+/gu, " ").replace(code, " ");
}

/** What coding agents put before and after the user's own words; the sample may have lost either tag. */
const agentNote = /^(?:(?!<system-reminder>)[^])*<\/system-reminder>|<system-reminder>[^]*?(?:<\/system-reminder>|$)/gu;

/** Fenced and inline code, tags and addresses: their letters say nothing about the language of who pasted them. */
const code = /```[^]*?(?:```|$)|`[^`\n]*`|<[^<>\n]{1,200}>|\bhttps?:\/\/[!-~]+/gu;

/** Comments, statements, stack traces and error lines pasted without a fence; not "convert this: {…}". */
const codeLine =
  /^(?: *(?:\/\/|#|\/\*|<!--|--|at |File "|Traceback|\d{4}-\d\d-\d\d[T ]|[\w.]*(?:Error|Exception|Warning)\b)[^\n]*|(?![^\n]*[^"]: ?[[{])[^\n]*(?:[;{}]|=>|\(\):?) *)$/gmu;

/** Nudges that people of all languages type in any of them. */
const nudge =
  /\b(?:ok(?:ay)?|yes|no|yep|sure|continue|proceed|go on|go ahead|keep going|another one|one more|next|more|again|retry|please|thanks?|thank you|great|good|weiter|continúa|sigue|continua|devam|dalej)\b|продолжай(?:те)?|дальше|계속(?:해\s*(?:줘|주세요)?)?|(?:네|응|넵|좋아요?|감사합니다|고마워요?)(?![가-힣])|继续|繼續|好的|谢谢|謝謝|続けて(?:ください)?|はい|ありがとう/giu;

type Writing = "chinese" | "japanese" | "other" | "unclear";

/** In letters of an alphabet: a turn of less says too little to change the language of what came before. */
const leastWeight = 9;

function writingOf(text: string): Writing {
  const whole = weigh(text);
  if (isSentence(whole) || edgesOf(text).some(isRequest)) {
    return whole.kana > whole.ideographs / 10 ? "japanese" : "chinese";
  }
  return whole.total < leastWeight ? "unclear" : "other";
}

/** In letters of an alphabet: an ideograph or a Hangul syllable says about as much as three of them, a kana as two. */
interface Weights {
  ideographs: number;
  kana: number;
  total: number;
  /** Words of Chinese or Japanese grammar are there, and not names and terms alone. */
  grammatical: boolean;
  /** Three words of other letters follow each other, as in a sentence of another language. */
  otherProse: boolean;
}

function weigh(text: string): Weights {
  const hangul = 3 * count(text, /\p{Script=Hangul}/gu);
  const kana = 2 * count(text, /[\p{Script=Hiragana}\p{Script=Katakana}ー]/gu);
  const han = 3 * count(text, /[\p{Script=Han}\p{Script=Bopomofo}]/gu);
  const ideographs = hangul > 0 && isHanja(text) ? 0 : han;
  return {
    ideographs,
    kana,
    total: han + kana + hangul + count(text, otherLetter),
    grammatical: chineseGrammar.test(text) || /\p{Script=Hiragana}/u.test(text),
    otherProse: otherProse.test(text) && !framedInIdeographs.test(text),
  };
}

const count = (text: string, pattern: RegExp): number => text.match(pattern)?.length ?? 0;

const otherLetter =
  /(?![\p{Script=Han}\p{Script=Bopomofo}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}ー])\p{L}/gu;

/** Korean of courts and newspapers may hold more hanja than Hangul, but Korean particles hang on them: 過失로, 國會의. */
const isHanja = (text: string): boolean => count(text, hanjaWithParticle) >= 2 || !spokenChinese.test(text);

const hanjaWithParticle = /\p{Script=Han}\)?(?:은|는|이|가|을|를|의|에|로|으로|와|과|도|만|한|할|하|된|되|인)/gu;

/** Words of grammar that neither names nor hanja are made of. */
const spokenChinese = /[吗嗎呢吧啊们們么麼这這哪你您她它怎谁誰很个给让讓请請喺嘅唔咗佢冇]/u;

const chineseGrammar = new RegExp(`${spokenChinese.source}|[的了什把没沒还還帮幫在写寫之后後就与與都也从從要不]`, "u");

const otherProse =
  /(?<!\p{L})(?:\p{Lowercase}['’\p{L}]* +){2}\p{Lowercase}|(?:\p{Script=Hangul}+ +){2}\p{Script=Hangul}/u;

/** A sentence of another language inside a Chinese or Japanese one is a quotation. */
const framedInIdeographs =
  /^\P{L}*[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}][^]*[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]\P{L}*$/u;

/**
 * Ideographs among other letters make a sentence where grammar holds them together; without it they are names and terms,
 * unless next to nothing else is there. Technical Chinese is full of Latin words, but not of Latin sentences.
 */
function isSentence({ ideographs, kana, total, grammatical, otherProse: mixed }: Weights): boolean {
  const least = !grammatical ? 0.75 : mixed ? 0.4 : 0.25;
  return ideographs + kana > 3 && (ideographs + kana) / total >= least;
}

/** What the user wants stands before or after what was pasted, on a line of its own or set off by a colon. */
function edgesOf(text: string): string[] {
  const parts = text.split(/[\n:]/u).filter((part) => /\p{L}/u.test(part));
  return parts.length > 1 ? [parts.at(0) ?? "", parts.at(-1) ?? ""] : [];
}

function isRequest(part: string): boolean {
  const { ideographs, kana, total, grammatical } = weigh(part);
  return grammatical && total >= leastWeight && (ideographs + kana) / total >= 0.5;
}
