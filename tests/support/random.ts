export type Random = ReturnType<typeof createRandom>;

/** A seeded random generator (mulberry32): the seed of a failing round reproduces it. */
export function createRandom(seed: number) {
  let state = seed >>> 0;
  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
  const below = (limit: number): number => Math.floor(next() * limit);
  return {
    /** An integer from 0 to `limit` - 1. */
    below,
    pick<T>(values: readonly T[]): T {
      const value = values[below(values.length)];
      if (value === undefined) throw new Error("Nothing to pick from");
      return value;
    },
  };
}

/** Cuts bytes into pieces of random length, up to a random maximum. */
export function cutAtRandom(bytes: Uint8Array, random: Random): Uint8Array[] {
  const longest = random.pick([1, 2, 5, 20, 200, bytes.length]);
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < bytes.length;) {
    const end = Math.min(bytes.length, at + 1 + random.below(longest));
    pieces.push(bytes.slice(at, end));
    at = end;
  }
  return pieces;
}

/** The bytes in two pieces, once for every position between them. */
export function* cutAtEveryByte(bytes: Uint8Array): Generator<Uint8Array[]> {
  for (let at = 0; at <= bytes.length; at++) yield [bytes.slice(0, at), bytes.slice(at)];
}
