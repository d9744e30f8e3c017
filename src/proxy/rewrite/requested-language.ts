export interface RequestedLanguage {
  for: "chinese or japanese" | "another" | "nothing";
  /** Meant for the turns to come as well ("always answer in Japanese"), not for this one alone ("translate this"). */
  lasting: boolean;
}

/** Names of languages become one letter each before phrases are looked for, so that a phrase reads as it is spoken: `in ◆`. */
const wanted = "◆";
const another = "◇";

/** How people who write one language name the others, ask for them, and say that they do not want them. */
interface Phrasebook {
  wanted: RegExp;
  another?: RegExp;
  /** With ◆ for the language asked for. */
  asks: readonly RegExp[];
  /** A name with the words that turn a wish for it into its opposite. */
  refuses: RegExp;
  /** A name with the words that make it no wish: a choice, what something is written in, a condition. */
  mentions?: RegExp;
}

const anyOf = (words: string): string => `(?:${words.split(" ").join("|")})`;

/** In "Chinese restaurants" the name is an adjective; as a language, it ends its phrase or one of these words goes on. */
const asLanguage = `(?! (?!${anyOf(
  "about again and as at but by for from if in instead more now on only or please pls plz so thanks that the then this thx to too using when with characters? kanji language script text",
)}\\b)\\p{L})`;

const request = anyOf(
  "answer call(?:ed)? can chat compose continue convert could describe draft explain give like list locali[sz]e make need output phrase please provide put reply respond (?:re)?write say show speak spell summari[sz]e switch talk tell transcribe translate type want word what(?:['’]s|\\x20is|\\x20are)",
);

const english: Phrasebook = {
  wanted: new RegExp(
    `\\b${anyOf("simplified traditional mandarin cantonese chinese japanese zh-\\w+ ja-jp hanzi kanji hiragana katakana furigana")}(?: ${anyOf("mandarin cantonese chinese japanese hanzi kanji hiragana katakana")})*\\b`,
    "giu",
  ),
  another: new RegExp(
    `\\b${anyOf("english german french spanish portuguese italian russian ukrainian greek arabic hebrew hindi thai vietnamese turkish polish dutch indonesian korean hangul")}\\b`,
    "giu",
  ),
  asks: [
    `\\b${request}\\b.*\\b(?:in|into|to|for|with) (?:\\p{L}+ ){0,2}?(?:◇(?:,| and| or) )*◆${asLanguage}`,
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
  refuses:
    /\b(?:not|never|no|without|avoid|stop|cannot|instead of|rather than|except|slip\w*|drift\w*|why (?:do|did|are)|(?<!why )(?:do|ca|wo)n['’]t)\b[^,;:◆◇]*[◆◇]/giu,
  mentions:
    /◇[◆◇,/ ]*\bor ◆|◆[◆◇,/ ]*\bor ◇|\b(?:is|are|was|were|written|printed|available)(?: only| all)? in ◆|\b(?:if|when|whenever|unless) (?:the|a|an|they|i|someone|asked)\b[^,;:◆]*◆.*/giu,
};

const korean: Phrasebook = {
  wanted:
    /(?:(?:중국어|중국말|중문|광둥어|광동어|일본어|일본말|일어|한문|한자|히라가나|가타카나|간체자?|번체자?)[ \t]*)+/gu,
  another: /영어|한국어|한국말|우리말|한글|독일어|프랑스어|불어|스페인어|러시아어|베트남어|태국어|아랍어/gu,
  asks: [
    /◆(?:(?:이?랑|와|과|하고) ?◇)?[^◆◇]{0,6}?로(?! ?(?:된|쓰인|쓰여|적힌|적혀|작성된|나온)).*(?:써|쓰|적|답|말|번역|옮|바꾸|바꿔|설명|알려|작성|해|뭐|무엇|어떻게|요약|표현|얘기|이야기|부탁|다듬|하는 법)/u,
    /◆로(?:요|만)? *(?:$|[,:])/u,
    /◆(?:를|을)? ?(?:번역|통역|가르|배우|배워|공부|연습|회화|알려)(?!하는 (?!법|방법))/u,
    /◆.{0,12}(?:읽|뜻|의미|발음|획순|가르)/u,
    /◆[^◆◇]*(?:단어|표현|문장|예문|인사|숫자|병음|문법)[^◇]*(?:알려|만들|써|정리|추천|가르)/u,
  ],
  refuses:
    /(?:[◆◇](?:나|이나|와|과|랑|하고|,) ?)*[◆◇][^◆◇,]*(?:지 ?(?:마|말|않)|말고|대신|빼고|금지|없이)|왜 [^◆◇]*◆/gu,
};

const chinese: Phrasebook = {
  wanted: /(?:简体|簡體|繁体|繁體)?(?:中文|汉语|漢語|国语|國語|普通话|普通話|华语|華語|粤语|粵語|日语|日語|日文)/gu,
  asks: [/[用以说說讲講成为為] ?◆/u, /◆(?:回答|回复|回覆|输出|輸出|解释|解釋)/u],
  refuses: /(?:不要|不用|不能|别|別|勿|禁止).{0,4}◆/gu,
};

const japanese: Phrasebook = {
  wanted: /日本語|中国語|広東語|漢字|ひらがな|カタカナ/gu,
  asks: [/◆[でにへ訳]/u],
  refuses: /◆[^◆。、]*(?:ないで|しない|せず|以外|ではなく|じゃなく)/gu,
};

const nothing = /(?!)/u;

const phrasebooks = [english, korean, chinese, japanese];

/** Other languages, in the few words that stand for "in Chinese" there. */
const elsewhere =
  /(?<!\b(?:nicht|pas|no|não|non|không) )(?<!не )(?:\b(?:(?:auf|lerne) (?:Chinesisch|Japanisch)|in (?:chines|japan)ischen Schriftzeichen|ins (?:Chinesische|Japanische)|en (?:chinois|japonais|chino|japonés)|al (?:chino|japonés)|(?:em|para o) (?:chinês|japonês)|in (?:cinese|giapponese))(?!\p{L})|(?:po (?:chińsku|japońsku)|на (?:китайск|японск)(?:ий|ом)|по-(?:китайски|японски)|tiếng (?:Trung|Nhật))(?!\p{L}))/iu;

/** Questions about a word in ideographs or kana, whose answer has to repeat it. */
const asksAboutWord = [
  /\b(?:mean(?:s|ing)?|pronounc\w+|strokes?|radical|particle|grammar|difference|(?:pinyin|romaji|reading) (?:for|of)|how (?:do|to|is|are|would)\b.{0,60}(?:read|write|written|translate))\b.{0,60}[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/iu,
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}].{0,60}\b(?:mean(?:s|ing)?|pronounced?|sounds|polite|formal|informal)\b/iu,
  /\p{Script=Han}.{0,10}(?:뜻|의미|읽|발음|획순)/u,
];

const lasts =
  /\b(?:answer|respond|reply|speak|talk|chat|teach(?:er)?|tutor|translator|interpreter|quiz|learn(?:ing)?|practi[cs](?:e|ing)|study(?:ing)?|always|from now on|everything|whatever|switch)\b|답|말해|대화|앞으로|항상|가르|배우|배워|공부|회화|回答|回复|回覆|始终|答え/iu;

/** What the words ask for, whatever language they are in. Expects NFKC and no runs of spaces. */
export function wishIn(text: string): RequestedLanguage {
  const spoken = phrasebooks.filter((phrasebook) => names(phrasebook).some((name) => text.search(name) >= 0));
  const sentences = spoken.length > 0 || elsewhere.test(text) ? (text.match(/[^.!?。\n]{1,300}/gu) ?? []) : [];
  const wishes = sentences.map((sentence) => wishOf(sentence, spoken)).filter((wish) => wish.for !== "nothing");
  const wish = wishes.find(({ for: language }) => language === "chinese or japanese") ?? wishes.at(-1);
  if (wish !== undefined) return wish;
  // The word may stand in another sentence than the question: "She wrote 了解. What does that mean?"
  const aboutWord = asksAboutWord.some((ask) => ask.test(text));
  return { for: aboutWord ? "chinese or japanese" : "nothing", lasting: false };
}

const names = (phrasebook: Phrasebook): RegExp[] =>
  phrasebook.another === undefined ? [phrasebook.wanted] : [phrasebook.wanted, phrasebook.another];

function wishOf(sentence: string, spoken: readonly Phrasebook[]): RequestedLanguage {
  const wishes = new Set(spoken.map((phrasebook) => wishBy(phrasebook, sentence)));
  const lasting = lasts.test(sentence);
  if (wishes.has("chinese or japanese") || elsewhere.test(sentence)) return { for: "chinese or japanese", lasting };
  return { for: wishes.has("another") ? "another" : "nothing", lasting };
}

function wishBy(phrasebook: Phrasebook, sentence: string): RequestedLanguage["for"] {
  const named = sentence.replace(phrasebook.wanted, wanted).replace(phrasebook.another ?? nothing, another);
  const meant = named.replace(phrasebook.mentions ?? nothing, "");
  const accepted = meant.replace(phrasebook.refuses, "");
  const asks = (text: string): boolean => phrasebook.asks.some((ask) => ask.test(text));
  if (accepted.includes(wanted) && asks(accepted)) return "chinese or japanese";
  // Who asks in Chinese or Japanese for something else still reads it.
  if (phrasebook.another === undefined) return "nothing";
  const swapped = accepted.replaceAll(wanted, "").replaceAll(another, wanted);
  return accepted !== meant || (swapped.includes(wanted) && asks(swapped)) ? "another" : "nothing";
}
