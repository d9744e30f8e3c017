import packageJson from "../package.json" with { type: "json" };

declare const TOLLGATE_COMMIT: string | undefined;

/** The release and the commit; a built binary holds the latter, a checkout does not know it. */
export const build = {
  version: packageJson.version,
  commit: typeof TOLLGATE_COMMIT === "string" ? TOLLGATE_COMMIT : "unbuilt",
};
