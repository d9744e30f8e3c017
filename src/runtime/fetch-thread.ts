/** A path below a file: no socket can exist there. */
const nowhere = "/dev/null/nowhere";

/**
 * Starts the thread that runs all `fetch` calls. Bun 1.4.5 starts it at the first call, and exits if clients have taken
 * all file descriptors by then.
 * Remove when a first `fetch` without a free descriptor rejects.
 */
export async function startFetchThread(): Promise<void> {
  await fetch("http://localhost/", { unix: nowhere, proxy: false }).catch(() => {});
}
