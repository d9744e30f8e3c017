/** The counters of a response by their names in the API, in the order of tables and CSV files. */
export const counterLabels = {
  input_tokens: "Input",
  cached_input_tokens: "From cache",
  output_tokens: "Output",
  reasoning_tokens: "Reasoning",
} as const;

export type Counter = keyof typeof counterLabels;
export const counters = Object.keys(counterLabels) as Counter[];
