const prose =
  "A toll gate stands where the road narrows. Whoever passes shows a key, and the keeper writes down how much went " +
  "through: so many words in, so many words out. The keeper neither reads the letters nor holds the carts up, since " +
  "a road that is slow is a road that nobody takes. In the evening the book is closed, and every line of it adds up. " +
  "Travellers from far away speak other tongues — 한국어, français, 日本語 — and the book counts them all alike. 🙂 " +
  "When a cart breaks down in the middle of the gate, that is written down too, for a book with gaps is worth little.";

const musing =
  "The user wants an answer. First I look at what was asked, then at what is known, and then I weigh the two. " +
  "There may be more than one reading, so I take the plain one and keep the other in mind.";

const words = prose.split(" ");
const thoughts = musing.split(" ");

/** The text to generate. The first `thinkingTokens` of the `outputTokens` are a `<think>` block. */
export interface GeneratedText {
  outputTokens: number;
  thinkingTokens: number;
  /** If set, the first token has this length. */
  hugeTokenBytes?: number | undefined;
}

/** The text of one output token, counted from 0. A token is a word with the space before it. */
export function tokenText(text: GeneratedText, index: number): string {
  if (index === 0 && text.hugeTokenBytes !== undefined) return "x".repeat(text.hugeTokenBytes);
  if (index >= text.thinkingTokens) return wordOf(words, index - text.thinkingTokens);
  if (index === 0) return "<think>";
  return index === text.thinkingTokens - 1 ? "</think>\n\n" : wordOf(thoughts, index - 1);
}

/** The text of one token of thoughts without tags around them. */
export const thoughtOf = (index: number): string => wordOf(thoughts, index);

export function fullText(text: GeneratedText): string {
  return Array.from({ length: text.outputTokens }, (_, index) => tokenText(text, index)).join("");
}

function wordOf(list: readonly string[], index: number): string {
  const word = list[index % list.length] ?? "";
  return index === 0 ? word : ` ${word}`;
}

/** Counts any JSON value: about four characters per token, as English has in common vocabularies; a number is a token id. */
export function countTokens(value: unknown): number {
  if (typeof value === "string") return Math.ceil(value.length / 4);
  if (typeof value === "number") return 1;
  if (typeof value !== "object" || value === null) return 0;
  let tokens = 0;
  for (const member of Object.values(value)) tokens += countTokens(member);
  return tokens;
}
