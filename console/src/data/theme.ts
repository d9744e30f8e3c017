import { createSignal } from "solid-js";
import { readSetting, writeSetting } from "./browser-settings.ts";

export const themes = ["auto", "light", "dark"] as const;
export type Theme = (typeof themes)[number];

const stored = readSetting("theme");
const [theme, setTheme] = createSignal<Theme>(stored === "light" || stored === "dark" ? stored : "auto");
export { theme };

/** `public/theme.js` reads the same setting before the first paint of the next visit. */
export function chooseTheme(chosen: Theme): void {
  setTheme(chosen);
  writeSetting("theme", chosen === "auto" ? undefined : chosen);
  if (chosen === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = chosen;
}
