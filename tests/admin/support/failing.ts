/** Chunks that fail at the first one. */
export const failing = (error: Error): AsyncIterable<Uint8Array> => ({
  [Symbol.asyncIterator]: () => ({
    next: async () => {
      throw error;
    },
  }),
});
