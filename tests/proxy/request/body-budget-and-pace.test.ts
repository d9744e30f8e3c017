import { describe, expect, test } from "bun:test";
import { HeldBytes, HeldShare } from "../../../src/proxy/request/body-budget-and-pace.ts";
import { useFakeTime } from "../../support/fake-time.ts";

const mebibyte = 1024 * 1024;
const time = useFakeTime();

interface Sent {
  share: HeldShare;
  /** Why it was refused or given up; undefined: it goes on. */
  error: () => string | undefined;
  send: (bytes: number) => void;
}

/** A budget, of which a key has all unless its share is given. */
function start(maxBytes: number, maxBytesPerKey = maxBytes) {
  const budget = new HeldBytes(maxBytes, maxBytesPerKey, time.now);
  /** Begins a body of the key. @param length undefined if it is not declared */
  return (key: number, length: number | undefined): Sent => {
    const share = new HeldShare(budget, key);
    let error: string | undefined;
    const attempt = (action: () => void): void => {
      try {
        action();
      } catch (thrown) {
        error ??= String(thrown);
        share.release();
      }
    };
    attempt(() => share.begin(length, (given) => (error = String(given))));
    return { share, error: () => error?.replace("ProxyError: ", ""), send: (n) => attempt(() => share.arrived(n)) };
  };
}

/** Has bodies get so many bytes a second each, for some seconds. */
async function trickle(seconds: number, ...bodies: readonly (readonly [body: Sent, pace: number])[]): Promise<void> {
  for (let passed = 0; passed < seconds; passed++) {
    for (const [body, pace] of bodies) if (body.error() === undefined) body.send(pace);
    await time.pass(1000);
  }
}

const full = "too_many_bytes_held";
const slow = "request_timeout";
const errors = (...bodies: readonly Sent[]): (string | undefined)[] => bodies.map(({ error }) => error());

describe("the budget of held bytes", () => {
  test("is a key's up to its share, and all keys' but for a quarter, which is for the first body of a key", () => {
    const begin = start(100, 40);
    const [greedy, more] = [begin(1, 30), begin(1, 11)];
    expect(errors(greedy, more, begin(1, 10))).toEqual([undefined, full, undefined]);
    expect(errors(begin(2, 35), begin(2, 1), begin(3, 26), begin(3, 25))).toEqual([undefined, full, full, undefined]);
    expect(errors(begin(4, 1), begin(1, 1))).toEqual([full, full]);
    greedy.share.release();
    expect(errors(begin(1, 6), begin(4, 30))).toEqual([full, undefined]);
  });

  test("has again what is released, once, and what was decoded beside", () => {
    const begin = start(100);
    const [one, other] = [begin(1, 60), begin(2, undefined)];
    other.send(10);
    other.share.take(30);
    one.share.release();
    one.share.release();
    expect(errors(begin(3, 61), begin(3, 60))).toEqual([full, undefined]);
    expect(() => other.share.take(1)).toThrow(full);
  });

  test("is taken a mebibyte ahead: what is announced is open to others, unless it has arrived", () => {
    const begin = start(16 * mebibyte);
    const announced = Array.from({ length: 4 }, (_, key) => begin(key, 16 * mebibyte));
    expect(errors(...announced)).toEqual([undefined, undefined, undefined, undefined]);
    announced[0]?.send(3 * mebibyte);
    // 3 have arrived, 4 are taken ahead.
    const other = begin(5, 13 * mebibyte);
    expect(errors(begin(6, 13 * mebibyte + 1), other)).toEqual([full, undefined]);
    other.send(10 * mebibyte);
    expect(other.error()).toBeUndefined();
    other.send(1);
    expect(other.error()).toBe(full);
  });

  test("gives back what was taken ahead of a body that is over", () => {
    const begin = start(4 * mebibyte);
    const short = begin(1, 2 * mebibyte);
    short.send(10);
    short.share.release(short.share.arrivedBytes);
    const rest = begin(2, undefined);
    rest.send(4 * mebibyte - 11);
    expect(errors(short, rest)).toEqual([undefined, undefined]);
  });
});

describe("where the budget runs out, room is made by", () => {
  test("the body with the lowest pace, which then holds nothing", async () => {
    const begin = start(100 * mebibyte);
    const [fast, slowest, middle] = [begin(1, 60 * mebibyte), begin(2, 60 * mebibyte), begin(3, 60 * mebibyte)];
    await trickle(12, [fast, 4 * mebibyte], [slowest, mebibyte / 8], [middle, mebibyte]);
    middle.send(39 * mebibyte);
    expect(errors(fast, slowest, middle)).toEqual([undefined, full, undefined]);
  });

  test("none that is younger than ten seconds: then it is refused", async () => {
    const begin = start(10 * mebibyte);
    const [slowOne, fastOne] = [begin(1, 9 * mebibyte), begin(2, 9 * mebibyte)];
    fastOne.send(8.5 * mebibyte);
    await time.pass(9999);
    expect(errors(begin(3, mebibyte), slowOne)).toEqual([full, undefined]);
    await time.pass(1);
    expect(errors(begin(3, mebibyte), slowOne, fastOne)).toEqual([undefined, full, undefined]);
  });

  test("the youngest of equals", async () => {
    const begin = start(4 * mebibyte);
    const bodies: Sent[] = [];
    for (let key = 0; key < 4; key++) {
      bodies.push(begin(key, 2 * mebibyte));
      await time.pass(1000);
    }
    await time.pass(10_000);
    expect(errors(begin(9, 10), ...bodies)).toEqual([undefined, undefined, undefined, undefined, full]);
  });

  test("itself, if it is the slowest", async () => {
    const begin = start(4 * mebibyte);
    const [slowest, fast] = [begin(1, 4 * mebibyte), begin(2, 4 * mebibyte)];
    fast.send(2.5 * mebibyte);
    await time.pass(10_000);
    slowest.send(mebibyte + 1);
    expect(errors(slowest, fast)).toEqual([full, undefined]);
  });

  test("bodies of its own key, if that has its share", async () => {
    const begin = start(100 * mebibyte, 2 * mebibyte);
    const [other, first, second] = [begin(1, 2 * mebibyte), begin(2, mebibyte + 1), begin(2, mebibyte)];
    await time.pass(10_000);
    expect(errors(begin(2, 1), other, first, second)).toEqual([full, undefined, undefined, undefined].toReversed());
  });

  test("no first body of a key for another that is none", async () => {
    const begin = start(4 * mebibyte);
    const firsts = [1, 2, 3].map((key) => begin(key, mebibyte));
    await time.pass(10_000);
    expect(errors(begin(1, 10), ...firsts)).toEqual([full, undefined, undefined, undefined]);
  });
});

describe("a body that arrives", () => {
  test.each([
    [2000, 120, undefined],
    [1900, 29, undefined],
    [1900, 35, slow],
  ])("with %i bytes a second for %i s ends with %p", async (pace, seconds, error) => {
    const body = start(1000 * mebibyte)(1, 64 * mebibyte);
    await trickle(seconds, [body, pace]);
    expect(body.error()).toBe(error);
  });

  test.each([
    [65_536, 120, undefined],
    [60_000, 29, undefined],
    [60_000, 35, slow],
  ])(
    "with %i bytes a second for %i s, while half of the budget is used, ends with %p",
    async (pace, seconds, error) => {
      const begin = start(100 * mebibyte);
      const whole = begin(1, undefined).share;
      whole.release(whole.arrivedBytes);
      whole.take(50 * mebibyte + 1);
      const body = begin(2, 40 * mebibyte);
      await trickle(seconds, [body, pace]);
      expect(body.error()).toBe(error);
    },
  );

  test("is judged by its last 30 s, however fast it began", async () => {
    const body = start(1000 * mebibyte)(1, 64 * mebibyte);
    body.send(32 * mebibyte);
    await trickle(29, [body, 1]);
    expect(body.error()).toBeUndefined();
    await trickle(11, [body, 1]);
    expect(body.error()).toBe(slow);
  });

  test.each([
    [1, 29, 35],
    [100_000, 49, 55],
    [524_288, 259, 266],
  ])("of %i bytes that are read in one go has as long as they take at the least pace", async (length, on, over) => {
    const body = start(100 * mebibyte)(1, length);
    body.send(length);
    await time.pass(on * 1000);
    expect(body.error()).toBeUndefined();
    for (let at = on; at < over; at++) await time.pass(1000);
    expect(body.error()).toBe(slow);
  });

  test("is looked at no more once it is over", async () => {
    const begin = start(100 * mebibyte);
    const [whole, released] = [begin(1, 10), begin(1, 10)];
    whole.share.release(whole.share.arrivedBytes);
    released.share.release();
    await trickle(40);
    expect(errors(whole, released)).toEqual([undefined, undefined]);
  });
});
