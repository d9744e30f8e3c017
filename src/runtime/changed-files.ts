import { statSync } from "node:fs";

/** Tells one state of files from another without reading them; a link is followed. */
export function stateOfFiles(files: readonly string[]): string {
  const states = files.map((file) => {
    const found = statSync(file, { throwIfNoEntry: false });
    return found === undefined
      ? "missing"
      : `${found.dev}:${found.ino}:${found.size}:${found.mtimeMs}:${found.ctimeMs}`;
  });
  return states.join(" ");
}

/**
 * @param known the state that is in use
 * @returns a look at the files: whether they changed since the last change that it told. It tells one when two looks in a
 * row see the same, because files are written in several steps.
 */
export function createChangeDetector(files: readonly string[], known: string): () => boolean {
  let [told, previous] = [known, known];
  return () => {
    const found = stateOfFiles(files);
    const isSettled = found === previous;
    previous = found;
    if (!isSettled || found === told) return false;
    told = found;
    return true;
  };
}
