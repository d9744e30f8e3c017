/** Long enough that texts of other seeds begin elsewhere. */
const noise = ((): string => {
  let [text, state] = ["", 1];
  const words: string[] = [];
  for (let n = 0; n < 200_000; n++) {
    state = Math.imul(state, 1_664_525) + 1_013_904_223;
    words.push((state >>> 8).toString(36));
  }
  text = words.join(" ");
  return text + text;
})();

/** A text of this length, always the same for a seed. */
export function textOf(seed: number, length: number): string {
  const start = Math.abs(Math.trunc(seed * 7919)) % (noise.length / 2);
  const text = `${seed.toString(36)}: ${noise.slice(start, start + length)}`;
  return text.length >= length ? text.slice(0, length) : text.padEnd(length, ".");
}
