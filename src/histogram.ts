/** Counts of values by bucket. Sparse: most have a few dozen buckets. */
export type Histogram = Map<number, number>;

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

/** As text: `bucket:count`, separated by spaces. */
export const encodeHistogram = (histogram: Histogram): string =>
  [...histogram].map(([bucket, count]) => `${bucket}:${count}`).join(" ");

/** Adds a histogram that is given as text. Reads it by character: charts add up tens of thousands of them. */
export function addEncoded(sum: Histogram, text: string): void {
  let [bucket, number] = [0, 0];
  for (let at = 0; at <= text.length; at++) {
    const code = at < text.length ? text.charCodeAt(at) : space;
    if (code === colon) [bucket, number] = [number, 0];
    else if (code !== space) number = number * 10 + code - zero;
    else if (number > 0) {
      sum.set(bucket, (sum.get(bucket) ?? 0) + number);
      number = 0;
    }
  }
}

const [space, zero, colon] = [0x20, 0x30, 0x3a];

export function decodeHistogram(text: string): Histogram {
  const histogram: Histogram = new Map();
  addEncoded(histogram, text);
  return histogram;
}

export const countOf = (histogram: Histogram): number => [...histogram.values()].reduce((sum, count) => sum + count, 0);

/** For each share, such as 0.95, the value that this share of the values does not exceed. */
export function quantilesOf(histogram: Histogram, shares: readonly number[]): number[] {
  const buckets = [...histogram].toSorted(([a], [b]) => a - b);
  const total = countOf(histogram);
  return shares.map((share) => {
    let left = Math.ceil(total * share);
    for (const [bucket, count] of buckets) {
      left -= count;
      if (left <= 0) return valueOfBucket(bucket);
    }
    return 0;
  });
}
