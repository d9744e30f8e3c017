import type { WallClock } from "../../time/clock.ts";
import { ApiError } from "../http/errors.ts";
import type { KeyId } from "../../domain/keys.ts";

/** @returns to be disposed of when the POST has ended. @throws ApiError 429 */
export type StartPost = (keyId: KeyId) => Disposable;

/** Limits the POSTs of each key at this process. */
export function createPostLimit(
  {
    perSecond,
    unfinished,
  }: {
    /** In any second. */
    perSecond: number;
    /** That have not ended: a body may arrive slowly. */
    unfinished: number;
  },
  clock: WallClock,
): StartPost {
  /** An entry for each key that posted: administrators create them, so there are few. */
  const posts = new Map<KeyId, { startedAt: readonly number[]; open: number }>();

  return (keyId) => {
    const now = clock();
    const post = posts.get(keyId) ?? { startedAt: [], open: 0 };
    posts.set(keyId, post);
    // Those in the future are from before the clock was set back.
    post.startedAt = post.startedAt.filter((at) => at > now - 1000 && at <= now);
    if (post.startedAt.length >= perSecond || post.open >= unfinished) throw tooManyPosts(perSecond);
    post.startedAt = [...post.startedAt, now];
    post.open += 1;
    return { [Symbol.dispose]: () => void (post.open -= 1) };
  };
}

const tooManyPosts = (perSecond: number): ApiError =>
  new ApiError(429, `Too many POSTs with this key, at most ${perSecond} a second`, { "retry-after": "1" });
