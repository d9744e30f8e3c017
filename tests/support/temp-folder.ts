import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface TempFolder extends Disposable {
  path: string;
  /** A path inside. */
  file(name: string): string;
  remove(): void;
}

/** An empty folder, removed by `using`, by `remove`, and at the latest when the process ends. */
export function createTempFolder(): TempFolder {
  const path = mkdtempSync(join(tmpdir(), "tollgate-test-"));
  const remove = (): void => {
    process.off("exit", remove);
    rmSync(path, { recursive: true, force: true });
  };
  process.on("exit", remove);
  return { path, file: (name) => join(path, name), remove, [Symbol.dispose]: remove };
}
