/** What happens in a model, in the order of its times. */
export class Timeline {
  now = 0;
  readonly #heap: { time: number; order: number; happen: () => void }[] = [];
  #planned = 0;

  at(time: number, happen: () => void): void {
    const heap = this.#heap;
    const event = { time, order: this.#planned++, happen };
    let place = heap.push(event) - 1;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      const above = heap[parent];
      if (above === undefined || isBefore(above, event)) break;
      heap[place] = above;
      place = parent;
    }
    heap[place] = event;
  }

  run(until: number): void {
    for (let next = this.#take(); next !== undefined && next.time <= until; next = this.#take()) {
      this.now = next.time;
      next.happen();
    }
  }

  #take(): { time: number; happen: () => void } | undefined {
    const heap = this.#heap;
    const [first] = heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return last;
    let place = 0;
    for (;;) {
      let child = 2 * place + 1;
      const [left, right] = [heap[child], heap[child + 1]];
      if (left === undefined) break;
      if (right !== undefined && isBefore(right, left)) child += 1;
      const smaller = heap[child];
      if (smaller === undefined || isBefore(last, smaller)) break;
      heap[place] = smaller;
      place = child;
    }
    heap[place] = last;
    return first;
  }
}

const isBefore = (a: { time: number; order: number }, b: { time: number; order: number }): boolean =>
  a.time < b.time || (a.time === b.time && a.order < b.order);

/** Numbers from 0 to 1 that are the same for the same seed (mulberry32). */
export function createRandom(seed: number): () => number {
  let state = Math.trunc(seed);
  return () => {
    state = Math.trunc(state + 0x6d2b_79f5);
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A time until something happens that happens at random. */
export const exponential = (random: () => number, mean: number): number => -Math.log(1 - random()) * mean;
