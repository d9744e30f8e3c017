/** Tokens of one response. */
export interface Usage {
  inputTokens: number;
  outputTokens: number;
}
