/** Counts of values by bucket. Sparse: most have a few dozen buckets. */
export type Histogram = Map<number, number>;

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

export function addValue(histogram: Histogram, value: number): void {
  const bucket = bucketOf(value);
  histogram.set(bucket, (histogram.get(bucket) ?? 0) + 1);
}

export function addHistogram(sum: Histogram, added: Histogram): void {
  for (const [bucket, count] of added) sum.set(bucket, (sum.get(bucket) ?? 0) + count);
}

/** Writes `bucket:count`, separated by spaces. Where consecutive buckets have counts, `first bucket:count:count` does too. */
export const encodeHistogram = (histogram: Histogram): string =>
  [...histogram].map(([bucket, count]) => `${bucket}:${count}`).join(" ");

/**
 * What histograms in text are added to: an array, in which adding takes a fraction of the time that it takes in a map. Only
 * the buckets from `from` to before `to` may have counts.
 */
export interface HistogramSum {
  counts: Float64Array;
  from: number;
  to: number;
}

/** Enough for a month in milliseconds. */
const usualBuckets = 640;

export const createSum = (): HistogramSum => ({ counts: new Float64Array(usualBuckets), from: Infinity, to: 0 });

/** Reads the text by character: charts add up a million buckets. Several texts may be joined by spaces. */
export function addEncoded(sum: HistogramSum, text: string): void {
  const { length } = text;
  let { counts, from, to } = sum;
  for (let at = 0; at < length;) {
    let bucket = 0;
    let code = space;
    while (at < length && (code = text.charCodeAt(at++)) >= zero && code < colon) bucket = bucket * 10 + code - zero;
    if (code === colon && bucket < from) from = bucket;
    while (code === colon) {
      let count = 0;
      code = space;
      while (at < length && (code = text.charCodeAt(at++)) >= zero && code < colon) count = count * 10 + code - zero;
      if (bucket >= counts.length) counts = withRoom(counts, bucket + 1);
      counts[bucket] = (counts[bucket] ?? 0) + count;
      bucket++;
      if (bucket > to) to = bucket;
    }
  }
  sum.counts = counts;
  sum.from = from;
  sum.to = to;
}

/** A colon follows the nine. */
const [space, zero, colon] = [0x20, 0x30, 0x3a];

function withRoom(counts: Float64Array, to: number): Float64Array {
  const wider = new Float64Array(to * 2);
  wider.set(counts);
  return wider;
}

export function addSum(sum: HistogramSum, added: HistogramSum): void {
  if (added.to > sum.counts.length) sum.counts = withRoom(sum.counts, added.to);
  sum.from = Math.min(sum.from, added.from);
  sum.to = Math.max(sum.to, added.to);
  for (let bucket = added.from; bucket < added.to; bucket++) {
    sum.counts[bucket] = (sum.counts[bucket] ?? 0) + (added.counts[bucket] ?? 0);
  }
}

export function clearSum(sum: HistogramSum): void {
  if (sum.to > 0) sum.counts.fill(0, sum.from, sum.to);
  [sum.from, sum.to] = [Infinity, 0];
}

/** Two numbers of up to 16 digits, and two separators. */
const maxBytesPerBucket = 34;
const decoder = new TextDecoder();

/**
 * In the order of the buckets, with runs. Writes bytes: a text that grows by a number at a time takes several times as long.
 */
export function encodeSum({ counts, from, to }: HistogramSum): string {
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

export function decodeHistogram(text: string): HistogramSum {
  const sum = createSum();
  addEncoded(sum, text);
  return sum;
}

export function countOf({ counts, from, to }: HistogramSum): number {
  let count = 0;
  for (let bucket = from; bucket < to; bucket++) count += counts[bucket] ?? 0;
  return count;
}

/** The value that each share of the values does not exceed. @param shares in rising order, such as 0.95 */
export function quantilesOf(sum: HistogramSum, shares: readonly number[]): number[] {
  const total = countOf(sum);
  if (total === 0) return shares.map(() => 0);
  const quantiles: number[] = [];
  let bucket = sum.from;
  let counted = sum.counts[bucket] ?? 0;
  for (const share of shares) {
    const rank = Math.ceil(total * share);
    while (counted < rank) counted += sum.counts[++bucket] ?? 0;
    quantiles.push(valueOfBucket(bucket));
  }
  return quantiles;
}
