import { expect, test } from "bun:test";
import { chmodSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { manualBlock } from "../support/manual.ts";
import { createTempFolder } from "../support/temp-folder.ts";

const scripts = join(import.meta.dir, "../../.ci/deb");
const systemctl = Bun.which("systemctl");
const canMount = process.getuid?.() === 0 && Bun.spawnSync(["unshare", "--mount", "true"]).success;

/** As on a machine that systemd runs; purging deletes this machine's data of Tollgate otherwise. */
const enter = `mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system && mount -t tmpfs tmpfs /var/lib && exec "$@"`;
/** Links are real; what a systemd that runs would do is written down. */
const stand = `#!/bin/sh
case $1 in
  enable | disable | is-enabled) exec ${systemctl} --root="$ROOT" "$@" ;;
  *) echo "$@" >>"$ROOT/calls" ;;
esac
`;

test.skipIf(!canMount || systemctl === null)(
  "a package that was removed and comes back starts what the operator had enabled, and purging leaves no link",
  async () => {
    using root = createTempFolder();
    const links = (): string[] =>
      [
        ...new Bun.Glob("etc/systemd/system/*.wants/*").scanSync({
          cwd: root.path,
          onlyFiles: false,
          followSymlinks: false,
          dot: true,
        }),
      ]
        .map((link) => link.split("/").at(-1) ?? "")
        .toSorted();
    for (const name of ["systemctl", "adduser", "deluser"]) {
      await Bun.write(root.file(`bin/${name}`), name === "systemctl" ? stand : "#!/bin/sh\n");
      chmodSync(root.file(`bin/${name}`), 0o755);
    }
    const units = root.file("lib/systemd/system");
    async function unpack(): Promise<void> {
      mkdirSync(units, { recursive: true });
      await Bun.write(join(units, "tollgate.service"), manualBlock("ini", "tollgate serve"));
      await Bun.write(join(units, "tollgate-backup.timer"), manualBlock("ini", "[Timer]"));
    }
    /** @returns what systemd was asked for */
    async function run(script: string, ...args: string[]): Promise<string[]> {
      await Bun.write(root.file("calls"), "");
      const { exitCode, stderr } = Bun.spawnSync(
        ["unshare", "--mount", "sh", "-ec", enter, "sh", join(scripts, script), ...args],
        { env: { PATH: `${root.file("bin")}:${process.env["PATH"]}`, ROOT: root.path } },
      );
      expect({ script, exitCode, stderr: stderr.toString() }).toMatchObject({ exitCode: 0 });
      return (await Bun.file(root.file("calls")).text()).trim().split("\n");
    }

    await unpack();
    expect(await run("postinst", "configure", "")).toEqual(["daemon-reload", "restart tollgate"]);
    Bun.spawnSync([systemctl ?? "", `--root=${root.path}`, "enable", "tollgate-backup.timer"]);
    expect(await run("prerm", "remove")).toEqual(["stop tollgate tollgate-backup.timer"]);
    rmSync(units, { recursive: true });
    await run("postrm", "remove");

    await unpack();
    // dpkg names the version that was configured last, as in an upgrade.
    const restarts = ["restart tollgate", "restart tollgate-backup.timer"];
    expect(await run("postinst", "configure", "0.1.0")).toEqual(["daemon-reload", ...restarts]);
    expect(links()).toEqual(["tollgate-backup.timer", "tollgate.service"]);

    await run("prerm", "remove");
    rmSync(units, { recursive: true });
    await run("postrm", "purge");
    expect(links()).toEqual([]);
  },
);
