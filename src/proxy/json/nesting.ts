/** The open containers of a text, in one bit for each: a hostile text may be nothing but brackets. */
export interface Nesting {
  depth: number;
  /** The bit of a container, at its depth, is set if it is an object. */
  objects: Uint32Array;
}

export function createNesting(): Nesting {
  return { depth: 0, objects: new Uint32Array(4) };
}

/** Whether the innermost container is an object. */
export function isInObject({ objects, depth }: Nesting): boolean {
  return (((objects[depth >>> 5] ?? 0) >>> (depth & 31)) & 1) === 1;
}

export function enter(nesting: Nesting, isObject: boolean): void {
  nesting.depth += 1;
  const word = nesting.depth >>> 5;
  if (word === nesting.objects.length) {
    const larger = new Uint32Array(word * 2);
    larger.set(nesting.objects);
    nesting.objects = larger;
  }
  const bit = 1 << (nesting.depth & 31);
  const others = (nesting.objects[word] ?? 0) & ~bit;
  nesting.objects[word] = isObject ? others | bit : others;
}
