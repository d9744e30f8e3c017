/** The operator's settings, as in `Config["rewrite"]`. */
export interface RewriteRules {
  /** The name of the model that the backend serves, spelled as the backend expects it. */
  readonly servedModel: string | undefined;
  readonly reasoningModel: string | undefined;
  readonly rewriteUnknownModels: boolean;
  readonly vendorPrefixes: readonly string[];
  readonly hanGuard: boolean;
  readonly maxContextTokens: number;
  readonly maxOutputTokens: number;
  readonly forceStreamUsage: "off" | "final" | "continuous";
  /** Not a setting: the body's tokens are to be reserved, so how many texts it asks for is read too. */
  readonly reservesTokens?: boolean;
}
