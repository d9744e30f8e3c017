import { statfs } from "node:fs/promises";

/** Measures the disk that has a folder. */
export async function measureDisk(folder: string) {
  const { bavail, blocks, bsize } = await statfs(folder);
  return {
    /** What this user may still write. */
    freeBytes: bavail * bsize,
    sizeBytes: blocks * bsize,
  };
}
