import { createEffect } from "solid-js";
import { setPlaygroundKey } from "../start/playground-key.ts";
import { queryClient } from "../queries.ts";
import { type Session, session } from "./session.ts";

/**
 * Forgets what a session has left in memory when it ends: by a logout, here or in another tab, or because the server no
 * longer accepts it. While a session is being resumed there is none yet, and the page already loads its data.
 */
export function forgetEndedSession(): void {
  createEffect<Session | undefined>((before) => {
    const current = session();
    if (before !== undefined && current === undefined) {
      setPlaygroundKey("");
      // The pages are gone by now. What is still shown is in a dialog with a secret, which outlives the session.
      queryClient.removeQueries({ type: "inactive" });
      queryClient.getMutationCache().clear();
    }
    return current;
  }, undefined);
}
