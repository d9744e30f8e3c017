/** A path below a file: nothing can ever listen there. */
const nowhere = "/dev/null/nowhere";

/**
 * Starts the thread that all calls of `fetch` run on. Bun starts it with the first of them, and ends the program where a
 * burst of clients has left no descriptor for it by then (1.4.5).
 */
export async function startFetchThread(): Promise<void> {
  await fetch("http://localhost/", { unix: nowhere, proxy: false }).catch(() => {});
}
