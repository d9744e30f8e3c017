import packageJson from "../package.json" with { type: "json" };

declare const TOLLGATE_COMMIT: string | undefined;

/** The release and, in a built binary, the commit that it was built from. */
export const version: string =
  typeof TOLLGATE_COMMIT === "string" ? `${packageJson.version} (${TOLLGATE_COMMIT})` : packageJson.version;
