import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { countScripts } from "../../../src/proxy/rewrite/language.ts";

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
