import type { KeyLimits } from "./limits.ts";

export type { KeyLimits, LimitName } from "./limits.ts";

export type KeyId = number;

/** What a key is for: everything, requests under `/v1`, or posting GPU samples. */
export type KeyScope = "all" | "inference" | "gpu";

/** What an API key may do. A key that may do everything has none. */
export interface KeyRules extends KeyLimits {
  scope: KeyScope;
  /** In lower case; one that ends in `*` is a prefix. Null: every model. */
  allowed_models: readonly string[] | null;
  /** Globs such as `/v1/chat/*`; `*` crosses slashes. Null: every path. */
  allowed_paths: readonly string[] | null;
}
