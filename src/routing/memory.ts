export interface MemorySize {
  /** How many entries there are at most; one takes 50 bytes. */
  entries: number;
  /** How many of these one owner may have: a client with a new name for each request must not empty the memory. */
  perOwner: number;
}

/**
 * What was last known under a number, such as where a conversation was. Each owner forgets its own oldest entries beyond its
 * share; if all owners together have too many, the one that was quiet for longest forgets. Of a large memory, the oldest 250th
 * goes at once: the first entry of a Map is found by walking past all that were deleted before it, 25 µs for each new name. A
 * kept iterator would find it in 0.2 µs, and keep each table that the Map ever had until it is asked for the next one.
 * @param onForgotten called with each value that is replaced, or makes room
 */
export function createMemory({ entries, perOwner }: MemorySize, onForgotten?: (value: number) => void) {
  /** Both in the order in which they were last set, oldest first: what is looked up and goes on is set anew. */
  const owners = new Map<number, Map<number, number>>();
  let size = 0;

  function forgetOldest(owner: number, own: Map<number, number>, count: number): void {
    const kept = own.size - count;
    for (const [name, value] of own) {
      if (own.size <= kept) break;
      own.delete(name);
      size -= 1;
      onForgotten?.(value);
    }
    if (own.size === 0) owners.delete(owner);
  }

  function makeRoom(): void {
    const kept = entries - portionOf(entries);
    for (const [owner, own] of owners) {
      if (size <= kept) break;
      forgetOldest(owner, own, size - kept);
    }
  }

  return {
    get: (owner: number, name: number): number | undefined => owners.get(owner)?.get(name),
    set(owner: number, name: number, value: number): void {
      const own = owners.get(owner) ?? new Map<number, number>();
      owners.delete(owner);
      owners.set(owner, own);
      const before = own.get(name);
      if (before !== undefined) onForgotten?.(before);
      if (own.delete(name)) size -= 1;
      own.set(name, value);
      size += 1;
      if (own.size > perOwner) forgetOldest(owner, own, 1 + portionOf(perOwner));
      if (size > entries) makeRoom();
    },
    size: (): number => size,
  };
}

const portionOf = (entries: number): number => Math.floor(entries / 250);
