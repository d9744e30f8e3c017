import { wishIn } from "./language-wishes.ts";

export interface Turn {
  role: string;
  text: string;
}

/** `asked`: the answer needs one of the two languages although the user writes another. */
export type ConversationLanguage = "chinese" | "japanese" | "asked" | "neither";

/** Long conversations are judged by a sample, so that the cost has a ceiling: the newest turns, the head and tail of each. */
const turnsSeen = 400;
const userTurnsRead = 8;
const systemTurnsRead = 4;
const headCharacters = 1200;
const tailCharacters = 600;

/** True where the Han guard is due: the conversation is neither Chinese nor Japanese and asks for neither. */
export function discouragesHan(conversation: readonly Turn[]): boolean {
  return languageOf(conversation) === "neither";
}

/** The user's newest turn that says enough decides; turns before it, and system prompts, count only by what they ask for good. */
export function languageOf(conversation: readonly Turn[]): ConversationLanguage {
  let written: Writing = "unclear";
  for (const text of listUserTexts(conversation)) {
    const wish = wishIn(text);
    if (wish.standing || written === "unclear") {
      if (wish.for === "chinese or japanese") return "asked";
      if (wish.for === "another") return "neither";
    }
    if (written === "unclear") written = writingOf(text);
    if (written === "chinese" || written === "japanese") return written;
  }
  return listSystemTexts(conversation).some(asksForGood) ? "asked" : "neither";
}

const asksForGood = (text: string): boolean => wishIn(text).for === "chinese or japanese";

function listUserTexts(conversation: readonly Turn[]): string[] {
  const texts: string[] = [];
  const oldest = Math.max(0, conversation.length - turnsSeen);
  for (let index = conversation.length - 1; index >= oldest && texts.length < userTurnsRead; index -= 1) {
    const turn = conversation[index];
    if (turn?.role === "user" && turn.text !== "") texts.push(proseOf(turn.text));
  }
  return texts;
}

const listSystemTexts = (conversation: readonly Turn[]): string[] =>
  conversation
    .slice(0, systemTurnsRead)
    .filter((turn) => turn.role === "system" || turn.role === "developer")
    .map((turn) => proseOf(turn.text));

/** Compatibility forms (fullwidth Latin, halfwidth kana, Kangxi radicals) become the plain letters they stand for. */
function proseOf(text: string): string {
  const sample =
    text.length <= headCharacters + tailCharacters
      ? text
      : `${text.slice(0, headCharacters)}\n${text.slice(-tailCharacters)}`;
  return sample.normalize("NFKC").replace(code, " ").replace(codeLine, "").replace(filler, " ");
}

/** Fenced and inline code, tags and addresses: their letters say nothing about the language of who pasted them. */
const code = /```[^]*?(?:```|$)|`[^`\n]*`|<[^<>\n]{1,200}>|\bhttps?:\/\/[!-~]+/gu;

/** Comments, statements, stack traces and error lines pasted without a fence. */
const codeLine =
  /^[ \t]*(?:\/\/|#|\/\*|<!--|--|at |File "|Traceback|[\w.]*(?:Error|Exception|Warning)\b|[^\n]*(?:[;{}]|=>|\(\):?)[ \t]*$)[^\n]*$/gmu;

/** Nudges that people of all languages type in any of them. */
const filler =
  /\b(?:ok(?:ay)?|yes|no|yep|sure|continue|proceed|go on|go ahead|keep going|next|more|again|retry|please|thanks?|thank you|great|good)\b|계속(?:해\s*(?:줘|주세요)?)?|(?:네|응|넵|좋아요?|감사합니다|고마워요?)(?![가-힣])|继续|繼續|好的|谢谢|謝謝|続けて(?:ください)?|はい|ありがとう/giu;

type Writing = "chinese" | "japanese" | "other" | "unclear";

/** In letters of an alphabet: a turn of less says too little to change the language of what came before. */
const leastWeight = 9;

/** An ideograph or a Hangul syllable says about as much as three letters of an alphabet, a kana as two. */
const weights = { han: 3, hangul: 3, kana: 2, letter: 1 };

function writingOf(text: string): Writing {
  const whole = weigh(text);
  if (whole.total < leastWeight) return "unclear";
  return isSentence(whole) || edgeLines(text).some((line) => isWholeSentence(weigh(line)))
    ? whole.kanaShare > 0.1
      ? "japanese"
      : "chinese"
    : "other";
}

interface Weighed {
  total: number;
  /** Of ideographs and kana among all letters, 0 to 1. */
  share: number;
  /** Of kana among ideographs and kana, 0 to 1. */
  kanaShare: number;
  /** Whether words of Chinese or Japanese grammar are there, and not names and terms alone. */
  grammatical: boolean;
  /** Whether three words of other letters follow each other, as in a sentence of another language. */
  otherProse: boolean;
}

function weigh(text: string): Weighed {
  const kana = count(text, /[\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Bopomofo}]/gu) * weights.kana;
  const han = count(text, /\p{Script=Han}/gu) * weights.han;
  const hangul = count(text, /\p{Script=Hangul}/gu) * weights.hangul;
  const letters = count(text, otherLetter) * weights.letter;
  const korean = hangul > han || count(text, hanjaWithParticle) >= 2;
  const eastAsian = kana + (korean && !chineseGrammar.test(text) ? 0 : han);
  const total = kana + han + hangul + letters;
  return {
    total,
    share: total === 0 ? 0 : eastAsian / total,
    kanaShare: eastAsian === 0 ? 0 : kana / eastAsian,
    grammatical: chineseGrammar.test(text) || /\p{Script=Hiragana}/u.test(text),
    otherProse: otherProse.test(text),
  };
}

const count = (text: string, pattern: RegExp): number => text.match(pattern)?.length ?? 0;

const otherLetter =
  /(?![\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Bopomofo}\p{Script=Hangul}])\p{L}/gu;

/** Korean of courts and newspapers may hold more hanja than Hangul, but its particles hang on them: 過失로, 契約(계약)은. */
const hanjaWithParticle = /\p{Script=Han}\)?(?:은|는|이|가|을|를|의|에|로|으로|와|과|도|만|한|할|하|된|되|인)/gu;

const chineseGrammar = /[的了吗嗎呢吧啊们們么麼什这這你您她它请請帮幫怎没沒很还還谁誰把给給让讓喺嘅唔咗佢冇]/u;

const otherProse =
  /(?:\p{Lowercase}['’\p{L}]*[ \t]+){2}\p{Lowercase}|(?:\p{Script=Hangul}+[ \t]+){2}\p{Script=Hangul}/u;

/**
 * Ideographs among other letters make a sentence where grammar holds them together; without it they are names and terms,
 * unless next to nothing else is there. Technical Chinese is full of Latin words, but not of Latin sentences.
 */
function isSentence({ share, grammatical, otherProse: quoted }: Weighed): boolean {
  if (!grammatical) return share >= 0.75;
  return share >= (quoted ? 0.5 : 0.25);
}

/** What the user wants stands before or after what was pasted. */
function edgeLines(text: string): string[] {
  const lines = text.split("\n").filter((line) => /\p{L}/u.test(line));
  return [lines.at(0) ?? "", lines.at(-1) ?? ""];
}

const isWholeSentence = ({ total, share, grammatical }: Weighed): boolean =>
  total >= leastWeight && grammatical && share >= 0.75;
