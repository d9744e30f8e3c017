/** What an operator chose, as `Config["rewrite"]` holds it. */
export interface RewriteRules {
  /** The served model's name, spelled as the backend wants it. */
  readonly servedModel: string | undefined;
  readonly reasoningModel: string | undefined;
  readonly rewriteUnknownModels: boolean;
  readonly vendorPrefixes: readonly string[];
  readonly hanGuard: boolean;
  readonly maxContextTokens: number;
  readonly maxOutputTokens: number;
  readonly forceStreamUsage: "off" | "final" | "continuous";
}
