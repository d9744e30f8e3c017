export interface Wish {
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
  /** A wish that is turned round by what stands before or after the name; it ends with, or begins at, ◆ or ◇. */
  refuses: RegExp;
}

/** In "Chinese restaurants" the name is an adjective; as a language, it ends its phrase or one of these words goes on. */
const asLanguage =
  "(?![ \\t]+(?!(?:and|or|but|please|then|for|from|with|using|about|by|only|instead|now|so|if|when|as|too|at|on|that|the|this|to|characters?|script|text|kanji|language)\\b)\\p{L})";

const english: Phrasebook = {
  wanted:
    /\b(?:simplified|traditional|mandarin|cantonese|chinese|japanese|hanzi|kanji|hiragana|katakana|furigana)(?:[ \t]+(?:mandarin|cantonese|chinese|japanese|hanzi|kanji|hiragana|katakana))*\b/giu,
  another:
    /\b(?:english|german|french|spanish|portuguese|italian|russian|ukrainian|greek|arabic|hebrew|hindi|thai|vietnamese|turkish|polish|dutch|indonesian|korean|hangul)\b/giu,
  asks: [
    `\\b(?:answer|respond|reply|(?:re)?write|speak|talk|chat|say|tell|translate|explain|describe|summari[sz]e|give|make|compose|draft|put|convert|transcribe|type|spell|list|call(?:ed)?|show|continue|switch|want|need|like|word|phrase)\\b.*\\b(?:in|into|to) (?:◇(?:,| and| or) )*◆${asLanguage}`,
    `(?:^|[,;:]) *(?:(?:now|and|but|the|same|thing|this|that|again|also|then|only|just) )*(?:in|into) ◆${asLanguage}`,
    `\\b(?:teach|learn(?:ing)?|practi[cs](?:e|ing)|study(?:ing)?|quiz|use|using)(?: \\p{L}+){0,3}? ◆${asLanguage}`,
    "\\b(?:what|which|teach|show|give|write|list|draw)\\b.*◆ ?(?:words?|terms?|phrases?|expressions?|characters?|names?|alphabet|grammar|verbs?|sentences?|for)\\b",
    "\\b(?:you are|be|act as)\\b.*◆ (?:tutor|teacher|translator|interpreter)",
  ].map((phrase) => new RegExp(phrase, "iu")),
  refuses:
    /(?:\b(?:not|never|no|without|avoid|stop|cannot|instead of|rather than|except)|(?<!why )\b(?:do|ca|wo)n['’]t)\b[^,;:◆◇]*[◆◇]/giu,
};

const korean: Phrasebook = {
  wanted:
    /(?:(?:중국어|중국말|중문|광둥어|광동어|일본어|일본말|일어|한문|한자|히라가나|가타카나|간체자?|번체자?)[ \t]*)+/gu,
  another: /영어|한국어|한국말|우리말|한글|독일어|프랑스어|불어|스페인어|러시아어|베트남어|태국어|아랍어/gu,
  asks: [
    /◆[^◆◇]{0,6}?로(?! ?(?:된|쓰인|쓰여|적힌|적혀|작성된|나온)).*(?:써|쓰|적|답|말|번역|옮|바꾸|바꿔|설명|알려|작성|해|뭐|무엇|어떻게|요약|표현|얘기|이야기|부탁)/u,
    /◆로(?:요|만)? *(?:$|[,:])/u,
    /◆(?:를|을)? ?(?:번역|통역|가르|배우|배워|공부|연습|회화|알려)/u,
  ],
  refuses: /(?:[◆◇](?:나|이나|와|과|랑|하고|,) ?)*[◆◇][^◆◇,]*(?:지 ?(?:마|말|않)|말고|대신|빼고|금지|없이)/gu,
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

const phrasebooks = [english, korean, chinese, japanese];

/** Other languages, in the few words that stand for "in Chinese" there. */
const elsewhere =
  /\b(?:auf (?:Chinesisch|Japanisch)|ins (?:Chinesische|Japanische)|en (?:chinois|japonais|chino|japonés)|al (?:chino|japonés)|(?:em|para o) (?:chinês|japonês)|in (?:cinese|giapponese))(?!\p{L})|(?:на (?:китайск|японск)(?:ий|ом)|по-(?:китайски|японски)|tiếng (?:Trung|Nhật))(?!\p{L})/iu;

/** Questions about a word in ideographs or kana, whose answer has to repeat it. */
const asksAboutWord = [
  /\b(?:mean(?:s|ing)?|pronounc\w+|strokes?|radical|difference|how (?:do|to|is|are|would)\b.*(?:read|write|written|translate))\b.*[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/iu,
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}].*\b(?:mean(?:s|ing)?|pronounced?)\b/iu,
  /\p{Script=Han}["'”’」』)]?(?:은|는|이|가|의|을|를)? ?(?:무슨 )?(?:뜻|의미|읽|발음|획순)/u,
];

const lasts =
  /\b(?:answer|respond|reply|speak|talk|chat|teach|tutor|quiz|learn(?:ing)?|practi[cs](?:e|ing)|study(?:ing)?|always|from now on|switch)\b|답|말해|대화|앞으로|항상|가르|배우|배워|공부|회화|回答|回复|回覆|始终|答え/iu;

/** What the words ask for, whatever language they are in. Expects NFKC. */
export function wishIn(text: string): Wish {
  let found: Wish = { for: "nothing", lasting: false };
  for (const sentence of text.match(/[^.!?。\n]{1,300}/gu) ?? []) {
    const wishedFor = wishOf(sentence);
    if (wishedFor === "nothing") continue;
    const lasting = lasts.test(sentence);
    if (wishedFor === "chinese or japanese") return { for: wishedFor, lasting };
    found = { for: wishedFor, lasting };
  }
  return found;
}

function wishOf(sentence: string): Wish["for"] {
  if (elsewhere.test(sentence) || asksAboutWord.some((ask) => ask.test(sentence))) return "chinese or japanese";
  const wishes = new Set(phrasebooks.map((phrasebook) => wishBy(phrasebook, sentence)));
  if (wishes.has("chinese or japanese")) return "chinese or japanese";
  return wishes.has("another") ? "another" : "nothing";
}

function wishBy(phrasebook: Phrasebook, sentence: string): Wish["for"] {
  const named = sentence.replace(phrasebook.wanted, wanted);
  const all = phrasebook.another === undefined ? named : named.replace(phrasebook.another, another);
  if (all === sentence) return "nothing";
  const accepted = all.replace(phrasebook.refuses, "");
  const asks = (text: string): boolean => phrasebook.asks.some((ask) => ask.test(text));
  if (accepted.includes(wanted) && asks(accepted)) return "chinese or japanese";
  const swapped = accepted.replaceAll(wanted, "").replaceAll(another, wanted);
  return accepted !== all || asks(swapped) ? "another" : "nothing";
}
