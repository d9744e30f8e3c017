/** Rows from before responses had one owner: hash, key, creates, made at, input, output, counted at, estimate, backend. */
export const oldResponses = [
  // Two made it, the later one at another backend, and one has read it.
  "'a', 1, 2, 1700000005, 10, 3, 1700000005900, 0, 'gpu-b'",
  "'a', 2, 1, 1700000004, 20, 4, 1700000009000, 7, 'gpu-a'",
  "'a', 3, 0, null, 30, 5, 1700000001000, 0, null",
  // Their backend named no time.
  "'b', 2, 1, null, 0, 0, 1700000002000, 0, null",
  "'b', 1, 1, null, 1, 1, 1700000003000, 0, null",
  // Made elsewhere.
  "'c', 1, 0, null, 5, 6, 1700000004000, 0, null",
  // From before keys were stored.
  "'d', 0, 0, null, 5, 6, 1700000004000, 0, null",
];

export const newOwners = [
  ["a", 2, "gpu-a", 1700000009000],
  ["b", 2, null, 1700000002000],
];

export const stillCounted = [
  ["a", 1, 10, 3, 1700000005900],
  ["a", 2, 20, 4, 1700000009000],
  ["a", 3, 30, 5, 1700000001000],
  ["b", 1, 1, 1, 1700000003000],
  ["b", 2, 0, 0, 1700000002000],
  ["c", 1, 5, 6, 1700000004000],
];
