import { lstatSync, rmSync } from "node:fs";
import { createConnection } from "node:net";

const prefix = "unix:";

/** The path in `unix:/path`; undefined if it is another kind of address. */
export const socketPathOf = (address: string): string | undefined =>
  address.startsWith(prefix) ? address.slice(prefix.length) : undefined;

/** @returns why a server cannot listen there, if it cannot; what a program that has gone left does not stop it */
export async function findSocketProblem(path: string): Promise<string | undefined> {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return undefined;
  if (!found.isSocket()) return `${path} exists and is not a socket`;
  return (await isServed(path)) ? `${path} is in use by another program` : undefined;
}

function isServed(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ path }, () => {
      socket.destroy();
      resolve(true);
    });
    // Any other failure, such as a full queue, means that somebody listens.
    socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code !== "ECONNREFUSED"));
  });
}

/** Removes the socket, unless another program has replaced it. */
export function createSocketRemover(path: string): () => void {
  const { ino } = lstatSync(path);
  return () => {
    if (lstatSync(path, { throwIfNoEntry: false })?.ino === ino) rmSync(path, { force: true });
  };
}
