export type KeyId = number;

/** What a key is for: everything, requests under `/v1`, or posting GPU samples. */
export type KeyScope = "all" | "inference" | "gpu";

/** How much a key may use; null: no limit. Members are named as in the API. */
export interface KeyLimits {
  max_concurrency: number | null;
  requests_per_minute: number | null;
  tokens_per_minute: number | null;
  tokens_per_day: number | null;
  tokens_per_month: number | null;
}

export type LimitName = keyof KeyLimits;

/** What an API key may do. A key that may do everything has none. */
export interface KeyRules extends KeyLimits {
  scope: KeyScope;
  /** In lower case; one that ends in `*` is a prefix. Null: every model. */
  allowed_models: readonly string[] | null;
}
