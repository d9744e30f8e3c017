import * as fc from "fast-check";
import { beforeAll, describe, expect, test } from "bun:test";
import {
  type ConversationMessage,
  countScripts,
  createRecall,
  discouragesHan,
  languageOf,
  userSample,
} from "../../../src/proxy/rewrite/language.ts";
import { heldOut } from "../../fixtures/conversations.held-out.ts";
import type { Label, LabelledConversation } from "../../fixtures/conversations.ts";
import { tuning } from "../../fixtures/conversations.tuning.ts";
import { threadMs } from "../../support/processor-time.ts";

const user = (text: string): ConversationMessage => ({ role: "user", text });

const turnsOf = ({ system, turns }: LabelledConversation): ConversationMessage[] => [
  ...(system === undefined ? [] : [{ role: "system", text: system }]),
  ...turns.map((text, index) => ({ role: index % 2 === 0 ? "user" : "assistant", text })),
];

const labelGiven = (conversation: LabelledConversation): Label =>
  discouragesHan(turnsOf(conversation)) ? "guard" : "silent";

const describeFailures = (set: readonly LabelledConversation[]): string[] =>
  set
    .filter((conversation) => labelGiven(conversation) !== conversation.label)
    .map(({ label, language, system, turns }) => `not ${label}: ${JSON.stringify({ language, system, turns })}`);

function scoreOf(set: readonly LabelledConversation[], label: Label): { precision: number; recall: number } {
  const given = set.filter((conversation) => labelGiven(conversation) === label);
  const wanted = set.filter((conversation) => conversation.label === label);
  const right = given.filter((conversation) => conversation.label === label).length;
  return { precision: right / given.length, recall: right / wanted.length };
}

function report(name: string, set: readonly LabelledConversation[]): string {
  const scores = (["guard", "silent"] as const).map((label) => {
    const { precision, recall } = scoreOf(set, label);
    return `${label} precision ${precision.toFixed(3)} recall ${recall.toFixed(3)}`;
  });
  return [`${name}, ${set.length} conversations: ${scores.join(", ")}`, ...describeFailures(set)].join("\n");
}

const everything = [...tuning, ...heldOut];

describe("The Han guard on labelled conversations", () => {
  test("is tested with at least 240 different ones in at least 14 languages, 100 of them held out", () => {
    const distinct = new Set(everything.map((conversation) => JSON.stringify(turnsOf(conversation))));
    expect(distinct.size).toBe(everything.length);
    expect(everything.length).toBeGreaterThanOrEqual(240);
    expect(heldOut.length).toBeGreaterThanOrEqual(100);
    expect(new Set(everything.map(({ language }) => language)).size).toBeGreaterThanOrEqual(14);
  });

  beforeAll(() => {
    process.stdout.write(`${report("tuned on", tuning)}\n${report("held out", heldOut)}\n`);
  });

  test.each(["guard", "silent"] as const)("decides %s with a precision and a recall of at least 98 %%", (label) => {
    const { precision, recall } = scoreOf(everything, label);
    expect(precision).toBeGreaterThanOrEqual(0.98);
    expect(recall).toBeGreaterThanOrEqual(0.98);
  });
});

describe("The language of a conversation", () => {
  test.each([
    ["chinese", "请问这个字怎么读?"],
    ["chinese", "ㄋㄧˇ ㄏㄠˇ"],
    ["japanese", "この漢字はどう読みますか?"],
    ["japanese", "ﾊﾝｶｸ ｶﾅ ﾃﾞｽ"],
    ["requested", "Answer in Chinese, please."],
    ["neither", "Answer in Korean, please."],
    ["neither", ""],
  ] as const)("is %s if the user writes %j", (language, text) => {
    expect(languageOf([user(text)])).toBe(language);
  });

  test.each([
    ["its ideographs are hanja among Hangul", "neither", "憲法裁判所 決定文의 要旨"],
    [
      "its ideographs are in comments of code",
      "neither",
      "Why does it hang?\n// 遍历所有用户的列表,然后给他们发送邮件",
    ],
    ["its ideographs are names", "neither", "Who is 宮崎駿?"],
    ["its ideographs are held together by grammar", "chinese", "React 的 hook 报错了"],
    [
      "a Chinese request stands above a long English text",
      "chinese",
      `总结一下这段话\n${"It was a dark night. ".repeat(20)}`,
    ],
    [
      "a Chinese sentence quotes an English one",
      "chinese",
      "这个 comment 说 please avoid mutating props directly inside a reducer,是什么意思",
    ],
    ["the request is in fullwidth letters", "requested", "Ａｎｓｗｅｒ ｉｎ Ｃｈｉｎｅｓｅ"],
    ["the name of the language is an adjective", "neither", "Write about life in Chinese cities"],
    ["the request is refused", "neither", "Do not answer in Chinese, please"],
    ["the request is conditional", "neither", "If the user writes in Chinese, answer in Chinese"],
    [
      "another language is requested for a Chinese text",
      "neither",
      "Translate into English: 明天下午三点我们在门口见面",
    ],
  ] as const)("is decided by its words if %s", (_, language, text) => {
    expect(languageOf([user(text)])).toBe(language);
  });

  test("is neither in an empty conversation", () => {
    expect(languageOf([])).toBe("neither");
  });

  test("does not depend on the assistant or a tool", () => {
    const others = ["assistant", "tool", "function"].map((role) => ({
      role,
      text: "我们来看看这个问题吧,请用中文回答。",
    }));
    expect(languageOf([user("Why is the sky blue at noon?"), ...others])).toBe("neither");
  });

  test("is requested by a developer's prompt as by a system's", () => {
    const question = user("What is the weather like?");
    expect(languageOf([{ role: "developer", text: "Always answer in Japanese." }, question])).toBe("requested");
  });

  test("is found at the end of a text too long to be read whole", () => {
    expect(languageOf([user(`${"lorem ipsum dolor ".repeat(50_000)}\n\n请帮我总结一下上面的内容`)])).toBe("chinese");
    expect(languageOf([user(`${"lorem ipsum dolor ".repeat(50_000)}\n\nSummarise this in Chinese.`)])).toBe(
      "requested",
    );
  });

  test("is requested by a line deep in a long system prompt", () => {
    const rules = "Be brief, be kind and never make anything up. ".repeat(60);
    const question = user("What is the weather like?");
    expect(languageOf([{ role: "system", text: `${rules}Always answer in Japanese. ${rules}` }, question])).toBe(
      "requested",
    );
    expect(languageOf([{ role: "system", text: `${rules}${rules}` }, question])).toBe("neither");
  });

  test("is the user's own if a coding agent adds notes around it", () => {
    const note = (length: number): string =>
      `<system-reminder>\n${"Never answer in Chinese unless asked to. ".repeat(length)}\n</system-reminder>`;
    expect(languageOf([user(`${note(2)}\n修复登录页面的测试\n${note(2)}`)])).toBe("chinese");
    expect(languageOf([user(`${note(1000)}\n修复登录页面的测试`)])).toBe("chinese");
    expect(languageOf([user(`修复登录页面的测试\n${note(1000)}`)])).toBe("chinese");
    expect(languageOf([user(`${note(1000)}\nFix the tests of the login page`)])).toBe("neither");
  });

  test("is found before thousands of empty messages and dozens of short ones", () => {
    const silence = Array.from({ length: 4000 }, (_, index) => ({
      role: index % 2 === 0 ? "assistant" : "user",
      text: "",
    }));
    const nudges = Array.from({ length: 40 }, () => user("continue"));
    expect(languageOf([user("请帮我写一个脚本"), ...silence, ...nudges])).toBe("chinese");
  });
});

describe("discouragesHan", () => {
  test("does not depend on earlier calls", () => {
    const forwards = everything.map(labelGiven);
    const backwards = everything.toReversed().map(labelGiven);
    expect(backwards.toReversed()).toEqual(forwards);
  });

  test("decides for any text in any role", () => {
    const role = fc.constantFrom("user", "assistant", "system", "developer", "tool", "");
    const text = fc.oneof(
      fc.string({ unit: "binary", maxLength: 200 }),
      fc
        .array(fc.constantFrom("answer in ", "Chinese", "漢", "かな", "한글", "\ud800", "`", "<", "\n", " 로 써"), {
          maxLength: 40,
        })
        .map((parts) => parts.join("")),
    );
    fc.assert(
      fc.property(fc.array(fc.record({ role, text }), { maxLength: 8 }), (conversation) => {
        expect(discouragesHan(conversation)).toBeBoolean();
      }),
      { numRuns: 300 },
    );
  });
});

/** Far above the measured 0.1 to 3 ms, far below the time to read everything or to backtrack. */
const allowedMs = 50;

describe("A hostile conversation takes bounded time", () => {
  test.each<[string, readonly ConversationMessage[], boolean]>([
    ["one turn of 5 MB", [user("translate say write in ".repeat(220_000))], true],
    ["one Chinese turn of 5 MB", [user("翻译".repeat(2_500_000))], false],
    ["100,000 empty turns", Array.from({ length: 100_000 }, () => user("")), true],
    ["100,000 nudges", Array.from({ length: 100_000 }, () => user("ok")), true],
    ["lone surrogates", [user("\ud800".repeat(100_000)), user("\udc00 why is this text broken? \ud83d")], true],
    ["5 MB of spaces", [user(" ".repeat(5_000_000))], true],
    ["white space and code that never ends", [user("  \t { ; ( ".repeat(100_000))], true],
    ["notes of an agent that never close", [user("<system-reminder> </system-reminder".repeat(100_000))], true],
    ["fences that never close", [user("``` ` <a ".repeat(100_000))], true],
    ["ligatures that stand for eighteen letters", Array.from({ length: 20 }, () => user("\ufdfa".repeat(5000))), true],
    [
      "beginnings of phrases",
      Array.from({ length: 20 }, () => user("how do I write what means in to ".repeat(200))),
      true,
    ],
    ["refusals without end", Array.from({ length: 20 }, () => user("not never without Chinese or ".repeat(200))), true],
    ["languages without end", Array.from({ length: 20 }, () => user("중국어나 일본어와 ".repeat(200))), true],
  ])("%s", (_, conversation, guarded) => {
    expect(discouragesHan(conversation)).toBe(guarded);
    // The best of three, because any may have to collect garbage.
    const tookMs = Array.from({ length: 3 }, () => threadMs(() => discouragesHan(conversation)));
    expect(Math.min(...tookMs)).toBeLessThan(allowedMs);
  });
});

test("the quick search agrees with languageOf on every labelled conversation", () => {
  for (const conversation of everything) {
    const turns = turnsOf(conversation);
    expect(discouragesHan(turns)).toBe(languageOf(turns) === "neither");
  }
});

describe("what is remembered of texts", () => {
  const hash = (text: string | Uint8Array, seed: number): number => Number(Bun.hash.xxHash3(text, BigInt(seed)) >> 12n);

  /** As it comes in a body, where only what is needed is decoded. */
  const received = ({ role, text }: ConversationMessage): ConversationMessage =>
    text === "" ? { role, text } : { role, text, raw: { length: text.length, parts: [Buffer.from(text)] } };

  test("changes no answer, however a conversation grows", () => {
    const recall = createRecall(hash, 200);
    for (let round = 0; round < 2; round += 1) {
      for (const conversation of everything) {
        const turns = turnsOf(conversation);
        for (let length = 1; length <= turns.length; length += 1) {
          const part = turns.slice(0, length);
          expect(languageOf(part, recall)).toBe(languageOf(part));
          expect(languageOf(part.map(received), recall)).toBe(languageOf(part));
        }
      }
    }
  });

  test("changes no answer for texts longer than what is read of them, or of others of the same beginning and end", () => {
    const recall = createRecall(hash);
    const text = fc.constantFrom(
      "日本語で答えて。",
      "Please answer in English. ",
      "코드를 고쳐 주세요. ",
      "\ufdfa",
      "x ",
    );
    const texts = fc
      .array(text, { maxLength: 4 })
      .chain((words) => fc.constantFrom(1, 100, 700).map((times) => words.join("").repeat(times)));
    const messages = fc.array(fc.tuple(fc.constantFrom("user", "system", "assistant"), texts), { maxLength: 5 });
    fc.assert(
      fc.property(messages, (drawn) => {
        const turns = drawn.map(([role, written]) => ({ role, text: written }));
        expect(languageOf(turns, recall)).toBe(languageOf(turns));
        expect(languageOf(turns.map(received), recall)).toBe(languageOf(turns));
      }),
    );
  });

  test("is of a text, and not of what it is decoded from", () => {
    const recall = createRecall(hash);
    const escaped = "\\u8bf7\\u5e2e\\u6211\\u5199\\u4e00\\u4e2a\\u811a\\u672c";
    const [decoded, plain] = [{ ...received(user(escaped)), text: "请帮我写一个脚本" }, user(escaped)];
    for (let round = 0; round < 2; round += 1) {
      expect(languageOf([decoded], recall)).toBe("chinese");
      expect(languageOf([plain], recall)).toBe("neither");
    }
  });

  test("is at most twice the capacity, and what was used lately stays", () => {
    const recall = createRecall(hash, 10);
    let reads = 0;
    const read = (text: string) =>
      recall(user(text), userSample, () => ({ length: (reads += 1), request: { language: "none", lasting: false } }));
    for (let index = 0; index < 1000; index += 1) {
      read("often");
      read(`once ${index}`);
    }
    expect(reads).toBe(1001);
    read("once 0");
    expect(reads).toBe(1002);
  });
});

const count = (text: string, pattern: RegExp): number => text.match(pattern)?.length ?? 0;

describe("countScripts", () => {
  test.each([
    ["", [0, 0, 0, 0]],
    ["Hello, Wörld! 123", [0, 0, 0, 10]],
    ["漢字ㄋ𠀀", [4, 0, 0, 0]],
    ["かなカナー", [0, 5, 0, 0]],
    ["한글 ㄱ", [0, 0, 3, 0]],
    ["漢a漢あ한😀\ud840", [2, 1, 1, 1]],
  ])("counts the letters of %j", (text, [han = 0, kana = 0, hangul = 0, other = 0]) => {
    expect(countScripts(text)).toEqual({ han, kana, hangul, other });
  });

  test("agrees with the patterns on any text, also when it has seen its characters", () => {
    const unit = fc.oneof(
      fc.string({ unit: "binary", maxLength: 1 }),
      fc.constantFrom(...Array.from("漢字かなカナー한글éа\ud840")),
    );
    const property = fc.property(fc.array(unit), (units) => {
      const text = units.join("");
      const han = count(text, /[\p{Script=Han}\p{Script=Bopomofo}]/gu);
      const kana = count(text, /[\p{Script=Hiragana}\p{Script=Katakana}ー]/gu);
      const hangul = count(text, /\p{Script=Hangul}/gu);
      const letters = count(
        text,
        /[\p{L}\p{Script=Han}\p{Script=Bopomofo}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}ー]/gu,
      );
      expect(countScripts(text)).toEqual({ han, kana, hangul, other: letters - han - kana - hangul });
      expect(countScripts(text)).toEqual(countScripts(text));
    });
    fc.assert(property, { numRuns: 500 });
  });
});
