export interface RequestedLanguage {
  language: "chinese or japanese" | "another" | "none";
  /** It holds for the messages to come too ("always answer in Japanese"), not for this one only ("translate this"). */
  lasting: boolean;
}

/** Names of languages are replaced by one symbol each before phrases are searched, so that those stay legible: `in ◆`. */
const chineseOrJapanese = "◆";
const another = "◇";

/** How writers of one language name the languages, request them and refuse them. */
interface Phrasebook {
  chineseOrJapanese: RegExp;
  /** Absent for Chinese and Japanese: somebody who writes them and requests another language still reads them. */
  others?: RegExp;
  /** With ◆ for the requested language. */
  requests: readonly RegExp[];
  /** A name with the words that refuse it. */
  refusals: RegExp;
  /** A name with words that request nothing: a choice, what something is written in, a condition. */
  mentions?: RegExp;
}

const anyOf = (words: string): string => `(?:${words.split(" ").join("|")})`;

/** In "Chinese restaurants" the name is an adjective; as a language, it ends its phrase or one of these words follows. */
const asLanguage = `(?! (?!${anyOf(
  "about again and as at but by for from if in instead more now on only or please pls plz so thanks that the then this thx to too using when with characters? kanji language script text",
)}\\b)\\p{L})`;

const requestVerb = anyOf(
  "answer call(?:ed)? can chat compose continue convert could describe draft explain give like list locali[sz]e make need output phrase please provide put reply respond (?:re)?write say show speak spell summari[sz]e switch talk tell transcribe translate type want word what(?:['’]s|\\x20is|\\x20are)",
);

const english: Phrasebook = {
  chineseOrJapanese: new RegExp(
    `\\b${anyOf("simplified traditional mandarin cantonese chinese japanese zh-\\w+ ja-jp hanzi kanji hiragana katakana furigana")}(?: ${anyOf("mandarin cantonese chinese japanese hanzi kanji hiragana katakana")})*\\b`,
    "giu",
  ),
  others: new RegExp(
    `\\b${anyOf("english german french spanish portuguese italian russian ukrainian greek arabic hebrew hindi thai vietnamese turkish polish dutch indonesian korean hangul")}\\b`,
    "giu",
  ),
  requests: [
    `\\b${requestVerb}\\b.*\\b(?:in|into|to|for|with) (?:\\p{L}+ ){0,2}?(?:◇(?:,| and| or) )*◆${asLanguage}`,
    `(?:^|[,;:]) *(?:${anyOf("now and but the same thing this that again also then only just")} )*(?:in|◇ to) ◆${asLanguage}`,
    `\\binto (?:\\p{L}+ ){0,2}?◆${asLanguage}`,
    `\\b${anyOf("teach learn(?:ing)? practi[cs](?:e|ing) study(?:ing)? quiz use using")}(?: \\p{L}+){0,3}? ◆${asLanguage}`,
    `\\b${anyOf("you we us let['’]?s please only")} speaks? ◆${asLanguage}`,
    "\\bspeak only ◆",
    `\\b${anyOf("what which teach show give write list draw")}\\b.*◆ ?${anyOf("words? terms? phrases? expressions? characters? names? alphabet grammar verbs? sentences? for")}\\b`,
    `◆ ${anyOf("translation equivalent word term name characters?")} (?:of|for)\\b`,
    `◆(?: ${anyOf("speakers? people person")})?(?: \\p{L}+)? say\\b`,
    "\\b(?:what|which) ◆ (?:is|are|do|does|means?)\\b",
    `\\b(?:you are|be|act as)\\b.*◆ ${anyOf("tutor teacher translator interpreter")}`,
    "\\b(?:language|lang|locale|target) ?[:=(] ?◆",
  ].map((phrase) => new RegExp(phrase, "iu")),
  refusals:
    /\b(?:not|never|no|without|avoid|stop|cannot|instead of|rather than|except|slip\w*|drift\w*|why (?:do|did|are)|(?<!why )(?:do|ca|wo)n['’]t)\b[^,;:◆◇]*[◆◇]/giu,
  mentions:
    /◇[◆◇,/ ]*\bor ◆|◆[◆◇,/ ]*\bor ◇|\b(?:is|are|was|were|written|printed|available)(?: only| all)? in ◆|\b(?:if|when|whenever|unless) (?:the|a|an|they|i|someone|asked)\b[^,;:◆]*◆.*/giu,
};

const korean: Phrasebook = {
  chineseOrJapanese:
    /(?:(?:중국어|중국말|중문|광둥어|광동어|일본어|일본말|일어|한문|한자|히라가나|가타카나|간체자?|번체자?)[ \t]*)+/gu,
  others: /영어|한국어|한국말|우리말|한글|독일어|프랑스어|불어|스페인어|러시아어|베트남어|태국어|아랍어/gu,
  requests: [
    /◆(?:(?:이?랑|와|과|하고) ?◇)?[^◆◇]{0,6}?로(?! ?(?:된|쓰인|쓰여|적힌|적혀|작성된|나온)).*(?:써|쓰|적|답|말|번역|옮|바꾸|바꿔|설명|알려|작성|해|뭐|무엇|어떻게|요약|표현|얘기|이야기|부탁|다듬|하는 법)/u,
    /◆로(?:요|만)? *(?:$|[,:])/u,
    /◆(?:를|을)? ?(?:번역|통역|가르|배우|배워|공부|연습|회화|알려)(?!하는 (?!법|방법))/u,
    /◆.{0,12}(?:읽|뜻|의미|발음|획순|가르)/u,
    /◆[^◆◇]*(?:단어|표현|문장|예문|인사|숫자|병음|문법)[^◇]*(?:알려|만들|써|정리|추천|가르)/u,
  ],
  refusals:
    /(?:[◆◇](?:나|이나|와|과|랑|하고|,) ?)*[◆◇][^◆◇,]*(?:지 ?(?:마|말|않)|말고|대신|빼고|금지|없이)|왜 [^◆◇]*◆/gu,
};

const chinese: Phrasebook = {
  chineseOrJapanese:
    /(?:简体|簡體|繁体|繁體)?(?:中文|汉语|漢語|国语|國語|普通话|普通話|华语|華語|粤语|粵語|日语|日語|日文)/gu,
  requests: [/[用以说說讲講成为為] ?◆/u, /◆(?:回答|回复|回覆|输出|輸出|解释|解釋)/u],
  refusals: /(?:不要|不用|不能|别|別|勿|禁止).{0,4}◆/gu,
};

const japanese: Phrasebook = {
  chineseOrJapanese: /日本語|中国語|広東語|漢字|ひらがな|カタカナ/gu,
  requests: [/◆[でにへ訳]/u],
  refusals: /◆[^◆。、]*(?:ないで|しない|せず|以外|ではなく|じゃなく)/gu,
};

const never = /(?!)/u;

const phrasebooks = [english, korean, chinese, japanese];

/** "in Chinese" and the like in other languages. */
const elsewhere =
  /(?<!\b(?:nicht|pas|no|não|non|không) )(?<!не )(?:\b(?:(?:auf|lerne) (?:Chinesisch|Japanisch)|in (?:chines|japan)ischen Schriftzeichen|ins (?:Chinesische|Japanische)|en (?:chinois|japonais|chino|japonés)|al (?:chino|japonés)|(?:em|para o) (?:chinês|japonês)|in (?:cinese|giapponese))(?!\p{L})|(?:po (?:chińsku|japońsku)|на (?:китайск|японск)(?:ий|ом)|по-(?:китайски|японски)|tiếng (?:Trung|Nhật))(?!\p{L}))/iu;

/** Questions about a word in ideographs or kana, which the response has to repeat. */
const questionsAboutWord: readonly {
  /** A part of every match of `pattern`, which takes a hundred times as long in a text of ideographs. */
  hint: RegExp;
  pattern: RegExp;
}[] = [
  {
    hint: /mean|pronounc|stroke|radical|particle|grammar|difference|pinyin|romaji|reading|how/i,
    pattern:
      /\b(?:mean(?:s|ing)?|pronounc\w+|strokes?|radical|particle|grammar|difference|(?:pinyin|romaji|reading) (?:for|of)|how (?:do|to|is|are|would)\b.{0,60}(?:read|write|written|translate))\b.{0,60}[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/iu,
  },
  {
    hint: /mean|pronounce|sounds|polite|formal/i,
    pattern:
      /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}].{0,60}\b(?:mean(?:s|ing)?|pronounced?|sounds|polite|formal|informal)\b/iu,
  },
  { hint: /[뜻의읽발획]/, pattern: /\p{Script=Han}.{0,10}(?:뜻|의미|읽|발음|획순)/u },
];

/** Words of a request that is meant to last. */
const lastingWords =
  /\b(?:answer|respond|reply|speak|talk|chat|teach(?:er)?|tutor|translator|interpreter|quiz|learn(?:ing)?|practi[cs](?:e|ing)|study(?:ing)?|always|from now on|everything|whatever|switch)\b|답|말해|대화|앞으로|항상|가르|배우|배워|공부|회화|回答|回复|回覆|始终|答え/iu;

/**
 * A part of every name above in ASCII, and of the others or a letter of them or of a question about a word. Most texts have
 * none, and these searches take a tenth of the time of the phrases. Two, because one takes longer.
 */
const asciiName =
  /chin|jap|giapp|cines|zh-|ja-|hanzi|kanji|[kg]ana|simplified|traditional|mandarin|cantonese|english|german|french|spanish|portuguese|italian|russian|ukrainian|greek|arabic|hebrew|hindi|thai|vietnamese|turkish|polish|dutch|indonesian|korean|hangul/i;
const otherName =
  /중국|중문|광둥|광동|일본|일어|한문|한자|히라|가타|간체|번체|영어|한국|우리말|한글|독일|프랑스|불어|스페인|러시아|베트남|태국|아랍|[ńŃếẾ\u0400-\u04ff\u2e80-\ua4cf\uf900-\ufaff\uff00-\uffef\ud800-\udfff]/;

const noRequest: RequestedLanguage = { language: "none", lasting: false };

/** Reads text of any language. Expects NFKC and no runs of spaces. */
export function readRequestedLanguage(text: string): RequestedLanguage {
  return asciiName.test(text) || otherName.test(text) ? readRequest(text) : noRequest;
}

function readRequest(text: string): RequestedLanguage {
  const spoken = phrasebooks.filter((phrasebook) => namesOf(phrasebook).some((name) => text.search(name) >= 0));
  const sentences = spoken.length > 0 || elsewhere.test(text) ? (text.match(/[^.!?。\n]{1,300}/gu) ?? []) : [];
  const requests = sentences
    .map((sentence) => readSentence(sentence, spoken))
    .filter(({ language }) => language !== "none");
  const request = requests.find(({ language }) => language === "chinese or japanese") ?? requests.at(-1);
  if (request !== undefined) return request;
  // The word may be in another sentence than the question: "She wrote 了解. What does that mean?"
  const isAboutWord = questionsAboutWord.some(({ hint, pattern }) => hint.test(text) && pattern.test(text));
  return { language: isAboutWord ? "chinese or japanese" : "none", lasting: false };
}

function namesOf({ chineseOrJapanese: names, others }: Phrasebook): RegExp[] {
  return others === undefined ? [names] : [names, others];
}

function readSentence(sentence: string, spoken: readonly Phrasebook[]): RequestedLanguage {
  const languages = new Set(spoken.map((phrasebook) => languageRequested(phrasebook, sentence)));
  const lasting = lastingWords.test(sentence);
  if (languages.has("chinese or japanese") || elsewhere.test(sentence)) {
    return { language: "chinese or japanese", lasting };
  }
  return { language: languages.has("another") ? "another" : "none", lasting };
}

function languageRequested(phrasebook: Phrasebook, sentence: string): RequestedLanguage["language"] {
  const { others = never, requests, refusals, mentions = never } = phrasebook;
  const named = sentence.replace(phrasebook.chineseOrJapanese, chineseOrJapanese).replace(others, another);
  const withoutMentions = named.replace(mentions, "");
  const accepted = withoutMentions.replace(refusals, "");
  const isRequested = (text: string): boolean =>
    text.includes(chineseOrJapanese) && requests.some((request) => request.test(text));
  if (isRequested(accepted)) return "chinese or japanese";
  if (phrasebook.others === undefined) return "none";
  const swapped = accepted.replaceAll(chineseOrJapanese, "").replaceAll(another, chineseOrJapanese);
  return accepted !== withoutMentions || isRequested(swapped) ? "another" : "none";
}
