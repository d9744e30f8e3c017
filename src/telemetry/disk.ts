import { statfs } from "node:fs/promises";

export interface DiskSpace {
  /** What this user may still write. */
  freeBytes: number;
  sizeBytes: number;
}

/** Measures the disk that has a folder. */
export async function measureDisk(folder: string): Promise<DiskSpace> {
  const { bavail, blocks, bsize } = await statfs(folder);
  return { freeBytes: bavail * bsize, sizeBytes: blocks * bsize };
}
