import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface TempFolder extends Disposable {
  path: string;
  /** A path inside the folder. */
  file(name: string): string;
  remove(): void;
}

/** An empty folder. It is removed by `using`, by `remove`, or when the process ends. */
export function createTempFolder(): TempFolder {
  const path = mkdtempSync(join(tmpdir(), "tollgate-test-"));
  const remove = (): void => {
    process.off("exit", remove);
    rmSync(path, { recursive: true, force: true });
  };
  process.on("exit", remove);
  return { path, file: (name) => join(path, name), remove, [Symbol.dispose]: remove };
}
