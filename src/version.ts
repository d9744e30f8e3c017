import packageJson from "../package.json" with { type: "json" };

declare const TOLLGATE_COMMIT: string | undefined;

/** The release, and the commit that a built binary holds. */
export const build = {
  version: packageJson.version,
  commit: typeof TOLLGATE_COMMIT === "string" ? TOLLGATE_COMMIT : "unbuilt",
};

/** The commit for people: that of the checkout, where the program runs from one and git is there. */
export function readableCommit(): string {
  if (Bun.isStandaloneExecutable) return build.commit;
  try {
    const git = Bun.spawnSync(["git", "-C", import.meta.dir, "rev-parse", "--short=12", "HEAD"], { stderr: "ignore" });
    return git.success ? `${git.stdout.toString().trim()}, a checkout` : build.commit;
  } catch {
    return build.commit;
  }
}
