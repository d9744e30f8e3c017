import { createSignal } from "solid-js";

/** The API key of the playground. In memory only: a reload forgets it, and so does the end of the session. */
export const [playgroundKey, setPlaygroundKey] = createSignal("");
