import { afterAll, beforeAll } from "bun:test";

/** One of these ends what was started. */
interface Ends {
  [Symbol.asyncDispose]?(): PromiseLike<void>;
  [Symbol.dispose]?(): void;
  stop?(): unknown;
}

/**
 * What the tests of a file or group share: it is started before them and ended after them, each of several in the order of the
 * calls. It stands for what `start` returns, in tests and hooks.
 */
export function shared<T extends object>(start: () => T | Promise<T>): T {
  let started: T | undefined;
  const get = (): T => {
    if (started === undefined) throw new Error("It has not been started: only tests and hooks can use it");
    return started;
  };
  beforeAll(async () => {
    started = await start();
  });
  afterAll(async () => {
    const ends: Ends = started ?? {};
    await (ends[Symbol.asyncDispose] ?? ends[Symbol.dispose] ?? ends.stop)?.call(ends);
  });
  return new Proxy({} as T, {
    get: (_, name): unknown => Reflect.get(get(), name),
    set: (_, name, value) => Reflect.set(get(), name, value),
    ownKeys: () => Reflect.ownKeys(get()),
    getOwnPropertyDescriptor: (_, name) => ({ ...Reflect.getOwnPropertyDescriptor(get(), name), configurable: true }),
  });
}
