import packageJson from "../../package.json" with { type: "json" };

declare const TOLLGATE_COMMIT: string | undefined;

/** The version and commit of the build. */
export const build = {
  version: packageJson.version,
  commit: typeof TOLLGATE_COMMIT === "string" ? TOLLGATE_COMMIT : "unbuilt",
};

/** The commit for `--version`: that of the git checkout if the program runs from source. */
export function readableCommit(): string {
  if (Bun.isStandaloneExecutable) return build.commit;
  try {
    const git = Bun.spawnSync(["git", "-C", import.meta.dir, "rev-parse", "--short=12", "HEAD"], { stderr: "ignore" });
    return git.success ? `${git.stdout.toString().trim()}, from source` : build.commit;
  } catch {
    return build.commit;
  }
}
