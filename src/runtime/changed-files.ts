import { statSync } from "node:fs";

/**
 * Tells one state of files from another without reading them; a link is followed. A file that cannot be looked at has a
 * state too: those who then read it report why.
 */
export function stateOfFiles(files: readonly string[]): string {
  return files.map(stateOfFile).join(" ");
}

function stateOfFile(file: string): string {
  try {
    const { dev, ino, size, mtimeMs, ctimeMs } = statSync(file);
    return `${dev}:${ino}:${size}:${mtimeMs}:${ctimeMs}`;
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  }
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
