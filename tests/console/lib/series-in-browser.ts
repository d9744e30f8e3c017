// The entry of a bundle: outside of a browser, `solid-js` stands for its server build, whose memos never change.
export { createRoot, createSignal } from "solid-js";
export { createStore } from "solid-js/store";
export { createSeries } from "../../../console/src/lib/series.ts";
