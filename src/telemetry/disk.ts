import { statfs } from "node:fs/promises";

export interface DiskSpace {
  /** For this user. */
  freeBytes: number;
  sizeBytes: number;
}

/** The disk that holds a folder. */
export async function measureDisk(folder: string): Promise<DiskSpace> {
  const { bavail, blocks, bsize } = await statfs(folder);
  return { freeBytes: bavail * bsize, sizeBytes: blocks * bsize };
}
