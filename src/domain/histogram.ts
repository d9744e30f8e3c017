/** What is measured of the requests of a model; `queueWait` of those that had to wait. Milliseconds, or tokens a second. */
export const latencyHistograms = ["firstByte", "duration", "tokensPerSecond", "queueWait"] as const;

export type LatencyHistogram = (typeof latencyHistograms)[number];

/** Buckets are this fine: values are multiples of a thousandth. */
const scale = 1000;
/** Each power of two has 16 buckets of the same width, so the middle of one is at most 3.2 % off. Smaller values are exact. */
const exactBelow = 32;
const bucketsPerDoubling = 16;

/** @param value at least 0, such as milliseconds or tokens a second */
export function bucketOf(value: number): number {
  const scaled = Math.round(Math.max(0, value) * scale);
  if (scaled < exactBelow) return scaled;
  const exponent = Math.floor(Math.log2(scaled));
  return exactBelow + (exponent - 5) * bucketsPerDoubling + Math.floor(scaled / 2 ** (exponent - 4)) - 16;
}

/** The middle of a bucket. */
export function valueOfBucket(bucket: number): number {
  if (bucket < exactBelow) return bucket / scale;
  const exponent = 5 + Math.floor((bucket - exactBelow) / bucketsPerDoubling);
  const width = 2 ** (exponent - 4);
  const start = (16 + ((bucket - exactBelow) % bucketsPerDoubling)) * width;
  return (start + width / 2) / scale;
}

/** Enough for a month in milliseconds. */
const usualBuckets = 640;
const nothing = new Float64Array();

/** A colon follows the nine. */
const [space, zero, colon] = [0x20, 0x30, 0x3a];

/** Two numbers of up to 16 digits, and two separators. */
const maxBytesPerBucket = 34;
const decoder = new TextDecoder();

/**
 * Counts of values by bucket, in an array, in which adding takes a fraction of the time that it takes in a map. As text:
 * `bucket:count`, separated by spaces; where consecutive buckets have counts, `first bucket:count:count`.
 */
export class Histogram {
  #counts = nothing;
  // Only the buckets from the first to before the second may have counts.
  #from = Infinity;
  #to = 0;

  /** @param text of one, or of several that are joined by spaces */
  constructor(text = "") {
    this.addText(text);
  }

  get count(): number {
    let count = 0;
    for (let bucket = this.#from; bucket < this.#to; bucket++) count += this.#counts[bucket] ?? 0;
    return count;
  }

  add(value: number): void {
    const bucket = bucketOf(value);
    this.#makeRoom(bucket, bucket + 1);
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
  }

  addAll(added: Histogram): void {
    this.#makeRoom(added.#from, added.#to);
    for (let bucket = added.#from; bucket < added.#to; bucket++)
      this.#counts[bucket] = (this.#counts[bucket] ?? 0) + (added.#counts[bucket] ?? 0);
  }

  /** Reads the text by character: charts add up a million buckets. */
  addText(text: string): void {
    const { length } = text;
    let counts = this.#counts;
    for (let at = 0; at < length;) {
      let bucket = 0;
      let code = space;
      while (at < length && (code = text.charCodeAt(at++)) >= zero && code < colon) bucket = bucket * 10 + code - zero;
      while (code === colon) {
        let count = 0;
        code = space;
        while (at < length && (code = text.charCodeAt(at++)) >= zero && code < colon) count = count * 10 + code - zero;
        if (bucket < this.#from || bucket >= this.#to) {
          this.#makeRoom(bucket, bucket + 1);
          counts = this.#counts;
        }
        counts[bucket] = (counts[bucket] ?? 0) + count;
        bucket++;
      }
    }
  }

  clear(): void {
    if (this.#to > 0) this.#counts.fill(0, this.#from, this.#to);
    [this.#from, this.#to] = [Infinity, 0];
  }

  /** In the order of the buckets. Writes bytes: a text that grows by a number at a time takes several times as long. */
  toText(): string {
    const [counts, from, to] = [this.#counts, this.#from, this.#to];
    const bytes = new Uint8Array(Math.max(0, to - from) * maxBytesPerBucket);
    let at = 0;
    for (let bucket = from; bucket < to; bucket++) {
      const count = counts[bucket] ?? 0;
      if (count === 0) continue;
      if (bucket === from || counts[bucket - 1] === 0) {
        if (at > 0) bytes[at++] = space;
        at = writeNumber(bytes, at, bucket);
      }
      bytes[at++] = colon;
      at = writeNumber(bytes, at, count);
    }
    return decoder.decode(bytes.subarray(0, at));
  }

  /** The value that each share of the values does not exceed. @param shares in rising order, such as 0.95 */
  quantiles(shares: readonly number[]): number[] {
    const total = this.count;
    if (total === 0) return shares.map(() => 0);
    const quantiles: number[] = [];
    let bucket = this.#from;
    let counted = this.#counts[bucket] ?? 0;
    for (const share of shares) {
      const rank = Math.ceil(total * share);
      while (counted < rank) counted += this.#counts[++bucket] ?? 0;
      quantiles.push(valueOfBucket(bucket));
    }
    return quantiles;
  }

  #makeRoom(from: number, to: number): void {
    if (to > this.#counts.length) {
      const wider = new Float64Array(Math.max(usualBuckets, to * 2));
      wider.set(this.#counts);
      this.#counts = wider;
    }
    if (from < this.#from) this.#from = from;
    if (to > this.#to) this.#to = to;
  }
}

/** @returns where the next byte goes */
function writeNumber(bytes: Uint8Array, at: number, number: number): number {
  let end = at + 1;
  for (let limit = 10; number >= limit; limit *= 10) end++;
  let left = number;
  for (let place = end - 1; place >= at; place--) {
    const rest = Math.floor(left / 10);
    bytes[place] = zero + left - rest * 10;
    left = rest;
  }
  return end;
}
