/** SQLite returns the result at once, PostgreSQL a promise of it: `await` takes either. */
export type MaybePromise<T> = T | Promise<T>;
