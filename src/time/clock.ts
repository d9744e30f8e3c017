/** Milliseconds since the epoch. Passed in wherever time matters, so that tests can cross midnight. */
export type Clock = () => number;
