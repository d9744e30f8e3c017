import type { Chapter, Section } from "./chapter.ts";

/** A section that has words of the query. */
export interface Hit {
  chapter: Chapter;
  section: Section;
  /** The text around the words. */
  excerpt: string;
}

const mostHits = 12;
const excerptLength = 220;

/** Words that say how one asks, not for what. */
const fillers = new Set(
  "a an and are at be by can do does for from get happens how i if in is it my not of on or put set the to up use what when where which with".split(
    " ",
  ),
);

/** The sections that fit best, the best first. A word also finds longer ones, and rare words count more than common ones. */
export function searchHandbook(chapters: readonly Chapter[], query: string): Hit[] {
  const words = wordsOf(query);
  const sections = chapters.flatMap((chapter) => chapter.sections.map((section) => index(chapter, section)));
  const weights = words.map((word) => {
    const having = sections.filter(({ text, heading }) => finds(text, word) || finds(heading, word)).length;
    return having === 0 ? 0 : Math.log(1 + sections.length / having);
  });
  return sections
    .map((one) => ({ one, score: scoreOf(one, words, weights) }))
    .filter(({ score }) => score > 0)
    .toSorted((left, right) => right.score - left.score)
    .slice(0, mostHits)
    .map(({ one: { chapter, section } }) => ({ chapter, section, excerpt: excerptOf(section.text, words) }));
}

interface Indexed {
  chapter: Chapter;
  section: Section;
  text: string;
  heading: string;
}

const index = (chapter: Chapter, section: Section): Indexed => ({
  chapter,
  section,
  text: simplify(section.text),
  heading: simplify(`${section.title || chapter.title} ${section.id === "" ? chapter.summary : ""}`),
});

/** Digits lose their separators: 100,000 and 100000 are the same. */
const simplify = (text: string): string => text.toLowerCase().replaceAll(/(?<=\d),(?=\d{3})/g, "");

/** All words, if all are fillers. */
export function wordsOf(query: string): string[] {
  const words = [...new Set(simplify(query).match(/[\p{L}\p{N}_./-]*[\p{L}\p{N}]/gu))];
  const telling = words.filter((word) => !fillers.has(word));
  return (telling.length === 0 ? words : telling).map(stem);
}

/** Without the plural: `tokens` finds `token` too. */
const stem = (word: string): string => (/[^s]s$/.test(word) && word.length > 3 ? word.slice(0, -1) : word);

const startOf = (text: string, word: string): number =>
  text.search(new RegExp(`(?<![\\p{L}\\p{N}])${RegExp.escape(word)}`, "u"));

const finds = (text: string, word: string): boolean => startOf(text, word) !== -1;

/** A word in a heading counts as three in the text. A section with more of the words comes before one with fewer. */
function scoreOf({ text, heading }: Indexed, words: readonly string[], weights: readonly number[]): number {
  let score = 0;
  let found = 0;
  for (const [at, word] of words.entries()) {
    const part = (finds(text, word) ? 1 : 0) + (finds(heading, word) ? 3 : 0);
    if (part > 0) found += 1;
    score += part * (weights[at] ?? 0);
  }
  return score * (found / Math.max(1, words.length));
}

/** Around the place where most of the words stand close together. */
function excerptOf(text: string, words: readonly string[]): string {
  const lower = text.toLowerCase();
  const starts = words.map((word) => startOf(lower, word)).filter((start) => start !== -1);
  const near = (start: number): number =>
    starts.filter((other) => other >= start && other < start + excerptLength).length;
  const [best = 0] = starts.toSorted((left, right) => near(right) - near(left) || left - right);
  const from = best < excerptLength / 3 ? 0 : text.lastIndexOf(" ", best - excerptLength / 6) + 1;
  const end = text.length - from <= excerptLength ? text.length : text.lastIndexOf(" ", from + excerptLength);
  return `${from > 0 ? "… " : ""}${text.slice(from, end)}${end < text.length ? " …" : ""}`;
}
