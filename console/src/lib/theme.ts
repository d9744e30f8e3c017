import { createSignal } from "solid-js";
import { readSetting, watchSetting, writeSetting } from "./browser-settings.ts";

export const themes = ["auto", "light", "dark"] as const;
type Theme = (typeof themes)[number];

const themeOf = (setting: string | undefined): Theme => themes.find((known) => known === setting) ?? "auto";

const [theme, setTheme] = createSignal(themeOf(readSetting("theme")));
export { theme };

/** `public/theme.js` reads the same setting before the first paint of the next visit. */
export function chooseTheme(chosen: Theme): void {
  writeSetting("theme", chosen === "auto" ? undefined : chosen);
  applyTheme(chosen);
}

/** Follows the choice in other tabs, until the calling component is removed. */
export const syncThemeAcrossTabs = (): void => watchSetting("theme", (setting) => applyTheme(themeOf(setting)));

function applyTheme(chosen: Theme): void {
  setTheme(chosen);
  if (chosen === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = chosen;
}
