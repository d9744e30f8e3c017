import { describe, expect, test } from "bun:test";
import { hasBrowser, startConsole } from "./support/console-under-test.ts";
import { reading, seed, seedKeys } from "./support/seed.ts";
import { shared } from "../support/shared.ts";

describe.skipIf(!hasBrowser)("an address that repeats parameters opens the page with the first values:", () => {
  const console = shared(async () =>
    startConsole((dataDir) =>
      seed(dataDir, async (store) => {
        const [keyId = 0] = await seedKeys(store, ["alpha", "beta"]);
        // Enough for a table.
        const readings = [0, 1, 2, 3, 4, 5, 6, 7, 8].map((id) => reading(id, { tempC: 40 + id }));
        await store.gpu.add({ keyId, recordedAt: Date.now(), readings });
      }),
    ),
  );

  test("requests", async () => {
    const query = ["model", "path", "address", "id"].map((name) => `${name}=a&${name}=b`).join("&");
    await using page = await console.visit(`/requests?${query}`);
    await page.getByText("No matching requests").waitFor();
    for (const label of ["Model", "Path", "Client address", "Request id"])
      expect(await page.getByLabel(label, { exact: true }).inputValue()).toBe("a");
  });

  test("keys", async () => {
    await using page = await console.visit("/keys?q=alp&q=bet&sort=-name&sort=name");
    await page.getByRole("row").filter({ hasText: "alpha" }).waitFor();
    expect(await page.getByRole("row").filter({ hasText: "beta" }).count()).toBe(0);
    expect(await page.getByRole("columnheader", { name: "Name" }).getAttribute("aria-sort")).toBe("descending");
  });

  test("usage", async () => {
    await using page = await console.visit("/usage?range=7d&range=30d&key=1&key=2");
    await page.getByRole("button", { name: "Key: alpha Clear this filter" }).waitFor();
    expect(await page.getByRole("radio", { name: "7 d" }).first().isChecked()).toBe(true);
  });

  test("gpus", async () => {
    await using page = await console.visit("/gpus?sort=-temperature&sort=gpu");
    const rows = page.getByRole("table", { name: "GPUs" }).locator("tbody th a");
    await rows.first().waitFor();
    expect(await rows.first().textContent()).toBe("8");
  });
});
