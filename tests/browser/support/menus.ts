import type { Locator, Page } from "playwright-core";

/** Chooses from the menu behind a button. */
export async function chooseFrom(within: Page | Locator, menu: string | RegExp, item: string): Promise<void> {
  await within.getByRole("button", { name: menu, exact: true }).click();
  await within.getByRole("button", { name: item, exact: true }).click();
}

/** Opens the menu with the zone and the theme. */
export const openAccountMenu = (page: Page): Promise<void> =>
  page.getByRole("button", { name: "Menu of admin" }).click();

export const logOut = (page: Page): Promise<void> => chooseFrom(page, "Menu of admin", "Log out admin");
