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

/** What is going to be said: `thinkTokens` of the `outputTokens` are a `<think>` block in front of the answer. */
export interface Speech {
  outputTokens: number;
  thinkTokens: number;
  /** The first token is this long instead. */
  hugeTokenBytes?: number | undefined;
}

/** The text of one output token, counted from 0. A token here is a word and the space before it. */
export function tokenText(speech: Speech, index: number): string {
  if (index === 0 && speech.hugeTokenBytes !== undefined) return "x".repeat(speech.hugeTokenBytes);
  if (index >= speech.thinkTokens) return wordOf(words, index - speech.thinkTokens);
  if (index === 0) return "<think>";
  return index === speech.thinkTokens - 1 ? "</think>\n\n" : wordOf(thoughts, index - 1);
}

export function fullText(speech: Speech): string {
  return Array.from({ length: speech.outputTokens }, (_, index) => tokenText(speech, index)).join("");
}

function wordOf(list: readonly string[], index: number): string {
  const word = list[index % list.length] ?? "";
  return index === 0 ? word : ` ${word}`;
}

/** About four characters a token, as English is with common vocabularies; a number is a token id. Any JSON value will do. */
export function countTokens(value: unknown): number {
  if (typeof value === "string") return Math.ceil(value.length / 4);
  if (typeof value === "number") return 1;
  if (typeof value !== "object" || value === null) return 0;
  let tokens = 0;
  for (const member of Object.values(value)) tokens += countTokens(member);
  return tokens;
}
