import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { colourCount } from "../../../console/src/usage/key-ranking.ts";
import { contrast, parseOklch } from "./contrast.ts";

const styles = await Bun.file(join(import.meta.dir, "../../../console/src/styles/tokens.css")).text();

/** The light and the dark value of a token. */
function valuesOf(name: string): Record<"light" | "dark", string> {
  const [, light, dark] =
    new RegExp(`--${name}: light-dark\\((oklch\\([^)]*\\)), (oklch\\([^)]*\\))\\);`).exec(styles) ?? [];
  if (light === undefined || dark === undefined) throw new Error(`--${name} is not a light-dark() of two colours`);
  return { light, dark };
}

const series = Array.from({ length: colourCount + 1 }, (_, index) => `series-${index}`);

describe.each(["light", "dark"] as const)("in the %s theme", (theme) => {
  test.each(series)("the chart colour %s has a contrast of 3 : 1 to what it is drawn on", (name) => {
    for (const background of ["surface", "raised"]) {
      const ratio = contrast(parseOklch(valuesOf(name)[theme]), parseOklch(valuesOf(background)[theme]));
      expect([background, ratio >= 3]).toEqual([background, true]);
    }
  });

  test("texts have a contrast of 4.5 : 1", () => {
    for (const text of ["ink", "muted", "accent-text", "bad-text"]) {
      for (const background of ["page", "surface", "raised"]) {
        const ratio = contrast(parseOklch(valuesOf(text)[theme]), parseOklch(valuesOf(background)[theme]));
        expect([text, background, ratio >= 4.5]).toEqual([text, background, true]);
      }
    }
  });
});
