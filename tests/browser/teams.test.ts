import { describe, expect, test } from "bun:test";
import { pollUntil } from "../support/poll-until.ts";
import { shared } from "../support/shared.ts";
import { chooseFrom } from "./support/menus.ts";
import { violationsInBothSchemes } from "./support/axe.ts";
import { msPerMinute } from "../../src/time/seoul.ts";
import { countPresses, downloadOf, hasBrowser, startConsole } from "./support/console-under-test.ts";
import { seed, seedKeys, usage } from "./support/seed.ts";
import { csvOf, sumOfColumn } from "./support/usage-console.ts";
import { waitUntilLoaded } from "./support/seeded-console.ts";
import { startTrafficConsole, waitForLog, waitForRunning } from "./support/traffic-console.ts";

interface Team {
  id: number;
  name: string;
  key_count: number;
  used: Record<string, number | null>;
}
type KeyRow = { id: number; name: string; team_id: number | null; is_active: boolean };

describe.skipIf(!hasBrowser)("without teams", () => {
  const traffic = shared(() => startTrafficConsole());

  test("no page, and no dialog that is not unfolded, tells of any", async () => {
    await traffic.chat();
    await waitForLog(traffic, 1);
    await using page = await traffic.console.visit("/");
    for (const path of ["/", "/keys", "/keys/1", "/usage", "/requests", "/requests/running"]) {
      await page.goto(traffic.console.program.adminUrl + path);
      await page.getByRole("heading", { level: 1 }).waitFor();
      await waitUntilLoaded(page);
      await page.waitForLoadState("networkidle");
      expect([path, await page.getByText(/\bteams?\b/i).count()]).toEqual([path, 0]);
    }
    await page.goto(`${traffic.console.program.adminUrl}/keys`);
    await chooseFrom(page, "Actions of caller", "Limits");
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Concurrent requests").waitFor();
    for (const label of ["Concurrent requests", "Tokens per day", "Tokens per month"])
      expect(await dialog.getByLabel(label).isVisible()).toBe(true);
    const folded = [
      dialog.getByLabel("Requests per minute"),
      dialog.getByLabel("Tokens per week"),
      dialog.getByRole("combobox", { name: "Team" }),
    ];
    for (const field of folded) expect(await field.isVisible()).toBe(false);
    await dialog.getByText("More limits").click();
    for (const field of folded) await field.waitFor();
  });

  test("the first one is made in the select of a key's dialog, and holds once the key is saved", async () => {
    const { admin } = traffic.console;
    const { id } = await admin.createKey("joins", { tokens_per_week: 5000 });
    await using page = await traffic.console.visit(`/keys/${id}`, { expectedErrors: /409/ });
    await page.getByRole("button", { name: "Edit limits" }).click();
    const dialog = page.getByRole("dialog", { name: "Limits and details of “joins”" });
    // What is set is not folded away.
    expect(await dialog.getByRole("textbox", { name: "Tokens per week" }).isVisible()).toBe(true);
    await dialog.getByText("More limits").click();
    const select = dialog.getByRole("combobox", { name: "Team" });
    await select.selectOption("New team…");
    const teamDialog = page.getByRole("dialog", { name: "New team" });
    expect(await page.evaluate(() => document.activeElement?.getAttribute("placeholder"))).toBe("e.g. research");
    await page.keyboard.press("Escape");
    await teamDialog.waitFor({ state: "detached" });
    expect(await select.inputValue()).toBe("");
    await select.selectOption("New team…");
    await teamDialog.getByLabel("Name").fill("ml");
    await teamDialog.getByLabel("Tokens per day").fill("20k");
    expect(await violationsInBothSchemes(page)).toEqual([]);
    await page.keyboard.press("Enter");
    await teamDialog.waitFor({ state: "detached" });
    expect(await select.evaluate((one: HTMLSelectElement) => one.selectedOptions[0]?.textContent)).toBe("ml");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    await page.getByRole("link", { name: "ml" }).click();
    await page.getByRole("heading", { name: "ml", level: 1 }).waitFor();
    await page.getByText("0 of 20K").waitFor();
    await page.getByRole("link", { name: "joins" }).waitFor();
    const { teams } = await admin.expectOk<{ teams: Team[] }>("GET", "/api/teams");
    expect(teams).toMatchObject([{ name: "ml", tokens_per_day: 20_000, key_count: 1 }]);
  });
});

describe.skipIf(!hasBrowser)("teams", () => {
  const traffic = shared(() => startTrafficConsole());
  const createTeam = (fields: object): Promise<Team> =>
    traffic.console.admin.expectOk<Team>("POST", "/api/teams", fields);
  const readKey = async (id: number): Promise<KeyRow | undefined> =>
    (await traffic.console.admin.expectOk<KeyRow[]>("GET", "/api/keys")).find((key) => key.id === id);

  test("are listed with what is nearly used up, and one has its limits, keys and usage on its page", async () => {
    const team = await createTeam({ name: "busy team", tokens_per_day: 10, max_concurrency: 4, tags: ["prod"] });
    await createTeam({ name: "calm team" });
    const { key } = await traffic.console.admin.createKey("member", { team_id: team.id });
    await traffic.chat({}, "usage=5,7", key);
    const used = async (): Promise<number | null | undefined> =>
      (await traffic.console.admin.expectOk<Team>("GET", `/api/teams/${team.id}`)).used["tokens_per_day"];
    await pollUntil(async () => (await used()) === 12);
    await using page = await traffic.console.visit("/keys");
    await page.getByRole("link", { name: "Teams" }).click();
    const row = page.getByRole("row").filter({ hasText: "busy team" });
    await row.getByText("At its limit").waitFor();
    await row.getByText("Tokens per day").waitFor();
    expect(await violationsInBothSchemes(page)).toEqual([]);
    await row.getByRole("link").click();
    await page.getByText("12 of 10", { exact: true }).waitFor();
    await page.getByText("0 of 4", { exact: true }).waitFor();
    await page.getByRole("row").filter({ hasText: "member" }).first().waitFor();
    await page.getByRole("row").filter({ hasText: "traffic-model" }).waitFor();
    await page.getByRole("group", { name: "Tokens by day" }).locator("path.fill").first().waitFor();
    expect(await violationsInBothSchemes(page)).toEqual([]);

    await page.getByRole("button", { name: "Edit the team" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("renamed team");
    await dialog.getByRole("textbox", { name: "Tokens per day" }).fill("");
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByRole("heading", { name: "renamed team", level: 1 }).waitFor();
    await page.getByText("12 of 10", { exact: true }).waitFor({ state: "detached" });

    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByText("1 key stays, without a team").waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("button", { name: "Delete team" }).click();
    await page.getByText("“renamed team” was deleted").waitFor();
    await page.getByRole("heading", { name: "Teams", level: 1 }).waitFor();
    await page.getByRole("link", { name: "calm team" }).waitFor();
    await page.getByRole("link", { name: "renamed team" }).waitFor({ state: "detached" });
  });

  test("from the overview, four clicks stop the one who floods, and nobody else", async () => {
    const { id: teamId } = await createTeam({ name: "shared" });
    const [flooder, other] = await Promise.all(
      ["flooder", "other"].map((name) => traffic.console.admin.createKey(name, { team_id: teamId })),
    );
    const streams = [1, 2, 3].map(() => traffic.chat({ stream: true }, "slow-head=60s", flooder?.key).catch(() => {}));
    const kept = traffic.chat({ stream: true }, "slow-head=60s", other?.key).catch(() => {});
    await waitForRunning(traffic, other?.id ?? 0);
    await waitForRunning(traffic, flooder?.id ?? 0);
    await using page = await traffic.console.visit("/");
    await page.getByRole("link", { name: /tokens\/s|places/ }).click();
    await page.getByRole("radio", { name: "By key" }).check();
    const row = page.getByRole("row").filter({ hasText: "flooder" });
    await row.getByText("3", { exact: true }).waitFor();
    expect(await violationsInBothSchemes(page)).toEqual([]);
    await page.getByRole("button", { name: "Stop the requests of flooder" }).click();
    expect(await page.evaluate(() => document.activeElement?.textContent)).toBe("Cancel");
    expect(await violationsInBothSchemes(page)).toEqual([]);
    await page.getByRole("button", { name: "Switch off and end" }).click();
    await page.getByText("1 key is off, and what ran was ended").waitFor();
    await Promise.all(streams);
    await row.waitFor({ state: "detached" });
    expect([(await readKey(flooder?.id ?? 0))?.is_active, (await readKey(other?.id ?? 0))?.is_active]).toEqual([
      false,
      true,
    ]);
    // The team has the other's request still; it can be ended with the key left on.
    const keys = Promise.withResolvers<void>();
    await page.route(/\/api\/keys(\?|$)/, (route) => keys.promise.then(() => route.continue()));
    await page.getByRole("radio", { name: "By team" }).check();
    await page.getByRole("row").filter({ hasText: "shared" }).getByText("1", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Stop the requests of shared" }).click();
    // What its buttons do depends on the keys of the team.
    expect(await page.getByRole("dialog").count()).toBe(0);
    keys.resolve();
    await page.getByRole("button", { name: "Switch off and end" }).waitFor();
    await page.getByRole("button", { name: "End all 1" }).click();
    await page.getByText("1 request was ended").waitFor();
    await kept;
    expect((await readKey(other?.id ?? 0))?.is_active).toBe(true);
  });

  test("are a column, a filter and a group of the request log, and a group of what models cost", async () => {
    const { id: teamId } = await createTeam({ name: "logged" });
    const { key } = await traffic.console.admin.createKey("logged key", { team_id: teamId });
    await traffic.chat({}, "usage=5,7", key);
    await traffic.chat();
    await waitForLog(traffic, 1, `&team_id=${teamId}`);
    await using page = await traffic.console.visit("/requests");
    await page.getByRole("columnheader", { name: "Team" }).waitFor();
    await chooseFrom(page, "Add a filter", "Team");
    await page.getByRole("combobox", { name: "Team" }).selectOption("logged");
    await page.getByRole("row").filter({ hasText: "caller" }).waitFor({ state: "detached" });
    await page
      .getByRole("row")
      .filter({ hasText: "logged key" })
      .getByRole("cell", { name: "logged", exact: true })
      .waitFor();
    expect(page.url()).toContain(`team=${teamId}`);
    await page.getByRole("combobox", { name: "Team" }).selectOption("All");
    await page.getByLabel("Group by").selectOption("Team");
    await page.getByRole("link", { name: "logged" }).waitFor();
    await page.getByRole("link", { name: "No team" }).click();
    await page.getByRole("row").filter({ hasText: "caller" }).first().waitFor();
    expect(page.url()).toContain("team=0");
    await page.goto(`${traffic.console.program.adminUrl}/usage?by=team`);
    await page.getByRole("rowheader", { name: "logged", exact: true }).waitFor();
    await page.getByRole("rowheader", { name: "No team" }).waitFor();
  });

  test("have a month that is the same in rows, sum, CSV and API, after a key was moved in the middle of it", async () => {
    const kst = new Date(Date.now() + 9 * 3_600_000);
    /** A day of the month before, in Seoul. */
    const minuteOf = (day: number): number =>
      Date.UTC(kst.getUTCFullYear(), kst.getUTCMonth() - 1, day, 3) / msPerMinute;
    await using own = await startConsole((dataDir) =>
      seed(dataDir, async (store) => {
        const [moved = 0, stays = 0] = await seedKeys(store, ["moved", "stays"]);
        const used = (keyId: number, day: number, teamId: number, tokens: number) => ({
          ...usage(keyId, minuteOf(day), [1, tokens, 0]),
          teamId,
          model: `m-${day}`,
        });
        await store.usage.add([
          used(moved, 3, 1, 100),
          used(moved, 20, 2, 7),
          used(stays, 20, 1, 30),
          used(stays, 5, 0, 9),
        ]);
      }),
    );
    const keys = await own.admin.expectOk<KeyRow[]>("GET", "/api/keys");
    for (const name of ["before", "after"]) await own.admin.expectOk("POST", "/api/teams", { name });
    const month = new Date(minuteOf(1) * msPerMinute).toISOString().slice(0, 7);
    const last = new Date(Date.UTC(kst.getUTCFullYear(), kst.getUTCMonth(), 0)).toISOString().slice(0, 10);
    await using page = await own.visit("/usage?range=last-month&by=team");
    const panel = page.getByRole("region", { name: "Usage and cost" });
    expect(keys.map(({ name }) => name)).toEqual(["moved", "stays"]);
    for (const [id, name, tokens] of [
      [1, "before", 130],
      [2, "after", 7],
    ] as const) {
      for (const by of ["key", "model", "day"]) {
        const path = `/api/usage/costs?from=${month}-01&to=${last}&by=${by}&team_id=${id}`;
        const { rows } = await own.admin.expectOk<{ rows: { input_tokens: number }[] }>("GET", path);
        expect(rows.reduce((sum, row) => sum + row.input_tokens, 0)).toBe(tokens);
        await page.goto(`${own.program.adminUrl}/usage?range=last-month&by=${by}&team=${id}`);
        await panel.locator("table:not(.stale) tfoot").getByText(String(tokens), { exact: true }).first().waitFor();
        const cells = await panel.locator("tbody td[data-label=Input]").allTextContents();
        expect([by, cells.reduce((sum, cell) => sum + Number(cell), 0)]).toEqual([by, tokens]);
        const csv = await csvOf(page, "Usage and cost");
        expect([by, sumOfColumn(csv, csv[0]?.indexOf("prompt_tokens") ?? -1)]).toEqual([by, tokens]);
      }
      await page.goto(`${own.program.adminUrl}/usage?range=last-month&by=team`);
      await panel.getByRole("row", { name: new RegExp(`^${name} .*\\b${tokens}\\b`) }).waitFor();
    }
  });

  test("that are at a limit are told by the overview", async () => {
    const { id: teamId } = await createTeam({ name: "used up", requests_per_minute: 1 });
    const { key } = await traffic.console.admin.createKey("once", { team_id: teamId });
    await traffic.chat({}, "usage=5,7", key);
    await using page = await traffic.console.visit("/");
    const near = page.getByRole("region", { name: "Near a limit" });
    await near.getByText("100% of requests per minute").waitFor();
    await near.getByRole("link", { name: "Team used up" }).click();
    await page.getByRole("heading", { name: "used up", level: 1 }).waitFor();
  });

  test("are told at /me to the holder of a key, with the limits that hold for all", async () => {
    const { id: teamId } = await createTeam({ name: "of mine", tokens_per_month: 1000, note: "confidential" });
    const { key } = await traffic.console.admin.createKey("holder", { team_id: teamId });
    await traffic.chat({}, "usage=5,7", key);
    await using page = await traffic.console.visit("/me", { anonymous: true });
    await page.getByLabel("API key", { exact: true }).fill(key);
    await page.keyboard.press("Enter");
    await page.getByText("This key has no limits.").waitFor();
    const panel = page.getByRole("region", { name: "Limits of your team" });
    await panel.getByText("of mine", { exact: true }).waitFor();
    await panel.getByText("12 of 1,000").waitFor();
    expect(await page.content()).not.toContain("confidential");
    expect(await violationsInBothSchemes(page)).toEqual([]);
  });
});

describe.skipIf(!hasBrowser)("the users of a key", () => {
  const traffic = shared(() => startTrafficConsole());

  const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  /** As Open WebUI signs whose a request is. */
  function identity(secret: string, sub: string, name: string): Record<string, string> {
    const claims = { iss: "open-webui", sub, name, exp: Math.floor(Date.now() / 1000) + 300 };
    const signed = `${encode({ alg: "HS256", typ: "JWT" })}.${encode(claims)}`;
    const mac = new Bun.CryptoHasher("sha256", secret).update(signed).digest("base64url");
    return { "x-openwebui-user-jwt": `${signed}.${mac}` };
  }

  test("come from Open WebUI once it has the two lines of the key's dialog, which waits for the first", async () => {
    const { admin } = traffic.console;
    const { id, key } = await admin.createKey("Open WebUI");
    await using page = await traffic.console.visit(`/keys/${id}`);
    await page.getByRole("heading", { name: "Open WebUI", level: 1 }).waitFor();
    expect(await page.getByRole("heading", { name: "Users" }).count()).toBe(0);
    await page.getByRole("button", { name: "Edit limits" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("More limits").click();
    await dialog.getByLabel("Users come from").selectOption("Open WebUI");
    await dialog.getByRole("group", { name: "Each user of the key" }).getByLabel("Concurrent requests").fill("4");
    const line = dialog.getByText(/^FORWARD_USER_INFO_HEADER_JWT_SECRET=/);
    const secret = ((await line.textContent()) ?? "").split("=")[1] ?? "";
    expect(secret).toHaveLength(48);
    await dialog.getByText("ENABLE_FORWARD_USER_INFO_HEADERS=true").waitFor();
    expect(await violationsInBothSchemes(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByText("Waiting for the first request").waitFor();
    // The secret is not shown again.
    await page.keyboard.press("Escape");
    await line.waitFor();
    await traffic.chat({}, "usage=5,7", key, identity(secret, "u-1", "Kim"));
    await dialog.getByText(/Last seen: Kim/).waitFor();
    expect(await violationsInBothSchemes(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Done" }).click();
    const row = page.getByRole("region", { name: "Users" }).getByRole("row").filter({ hasText: "Kim" });
    await row.waitFor();
    expect(await admin.expectOk<object[]>("GET", `/api/keys?key_id=${id}`)).toMatchObject([
      { users_from: "open-webui", has_users_secret: true, user_limits: { max_concurrency: 4, tokens_per_day: null } },
    ]);

    await page.getByRole("button", { name: "Limits of Kim" }).click();
    await dialog.getByRole("textbox", { name: "Tokens per day" }).fill("1M");
    await dialog.getByRole("combobox", { name: "Team" }).selectOption("New team…");
    await page.getByRole("dialog", { name: "New team" }).getByLabel("Name").fill("ml");
    await page.getByRole("button", { name: "Create team" }).click();
    await page.getByRole("dialog", { name: "New team" }).waitFor({ state: "detached" });
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    const { users } = await admin.expectOk<{ users: object[] }>("GET", `/api/users?key=${id}`);
    const { teams } = await admin.expectOk<{ teams: Team[] }>("GET", "/api/teams");
    const teamId = teams[0]?.id ?? 0;
    expect(users).toMatchObject([{ name: "Kim", tokens_per_day: 1_000_000, team_id: teamId }]);
    await waitForLog(traffic, 1);
    expect(await violationsInBothSchemes(page)).toEqual([]);
    await page.goto(`${traffic.console.program.adminUrl}/keys/teams/${teamId}`);
    await page.getByRole("region", { name: "Users" }).getByRole("link", { name: "Kim" }).click();
    await page.getByRole("row").filter({ hasText: "Kim" }).getByText("200").waitFor();
  });

  test("are imported and changed from a CSV, which is theirs, and many at once", async () => {
    const { admin } = traffic.console;
    const { id, key } = await admin.createKey("many users", { users_from: "header:x-who" });
    await traffic.chat({}, "tokens=1", key, { "x-who": "u-1" });
    interface UserRow {
      name: string;
      external: string;
      team_id: number | null;
      is_active: boolean;
      tokens_per_day: number | null;
      tags: string[];
    }
    const users = async (): Promise<UserRow[]> =>
      (await admin.expectOk<{ users: UserRow[] }>("GET", `/api/users?key=${id}`)).users;
    await pollUntil(async () => (await users()).length === 1);
    await using page = await traffic.console.visit(`/keys/${id}`);
    const dialog = page.getByRole("dialog");
    const panel = page.getByRole("region", { name: "Users", exact: true });
    await panel.getByRole("button", { name: "Import" }).click();
    await dialog
      .getByLabel("Users", { exact: true })
      .fill("external,name,team,tokens_per_day,phone\nu-1,Kim,art,1.5M,5\nu-2,Lee,art,,\nu-3,,,20k,\n");
    await dialog.getByText("3 users will be saved: “u-1”, “u-2”, “u-3”.").waitFor();
    await dialog.getByText("Those that the key has already will be changed: “u-1”.").waitFor();
    await dialog.getByText("These columns are not read: “phone”.").waitFor();
    await dialog.getByLabel("Create the teams that are not there").check();
    expect(await violationsInBothSchemes(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Save 3 users" }).click();
    await dialog.getByText("3 of 3 users saved.").waitFor();
    await dialog.getByRole("button", { name: "Done" }).click();
    const { teams } = await admin.expectOk<{ teams: Team[] }>("GET", "/api/teams");
    const art = teams.find(({ name }) => name === "art")?.id;
    const kim = { external: "u-1", name: "Kim", team_id: art ?? 0, tokens_per_day: 1_500_000 };
    const u3 = { external: "u-3", name: "u-3", team_id: null, tokens_per_day: 20_000 };
    expect(await users()).toMatchObject([
      kim,
      { external: "u-2", name: "Lee", team_id: art, tokens_per_day: null },
      u3,
    ]);
    await panel.getByRole("row").filter({ hasText: "Lee" }).waitFor();
    expect(await downloadOf(page, () => panel.getByRole("button", { name: "CSV" }).click())).toContain(
      "\r\nu-1,Kim,art,",
    );

    await page.getByRole("checkbox", { name: "Select Lee" }).check();
    await page.getByRole("checkbox", { name: "Select u-3" }).check();
    const bar = page.getByRole("region", { name: "Selected users" });
    await bar.getByText("2 users selected").waitFor();
    expect(await bar.getByRole("button", { name: "Paths" }).count()).toBe(0);
    await bar.getByRole("button", { name: "Switch off" }).click();
    expect(await violationsInBothSchemes(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Switch off" }).click();
    await page.getByText("2 users were switched off").waitFor();
    expect((await users()).map((user) => user.is_active)).toEqual([true, false, false]);
    await page.getByRole("checkbox", { name: "Select all users" }).check();
    await bar.getByRole("button", { name: "Tag" }).click();
    await dialog.getByLabel("Tags", { exact: true }).fill("art");
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByText("3 users were changed").waitFor();
    await page.getByRole("checkbox", { name: "Select all users" }).check();
    await bar.getByRole("button", { name: "Team" }).click();
    await dialog.getByRole("radio", { name: "From a tag" }).check();
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    await pollUntil(async () => (await users()).every((user) => user.team_id === art && user.tags[0] === "art"));
    // Two had that team; the three tags are one change.
    const { rows } = await admin.expectOk<{ rows: { change_id: string }[] }>("GET", "/api/audit?action=user.update");
    const [team, ...tagged] = rows.map((row) => row.change_id).slice(0, 4);
    expect([new Set(tagged).size, tagged.includes(team ?? "")]).toEqual([1, false]);
    await page.getByRole("checkbox", { name: "Select u-3" }).check();
    await bar.getByRole("button", { name: "Delete" }).click();
    await dialog.getByText("One that comes again is a new user.").waitFor();
    await dialog.getByRole("button", { name: "Delete" }).click();
    await page.getByText("1 user was deleted").waitFor();
    expect((await users()).map(({ name }) => name)).toEqual(["Kim", "Lee"]);
  });

  test("are stopped one by one: from the overview, four clicks stop the one who floods", async () => {
    const { admin } = traffic.console;
    const { key } = await admin.createKey("front end", { users_from: "header:x-who" });
    const ask = (who: string) => traffic.chat({ stream: true }, "slow-head=60s", key, { "x-who": who }).catch(() => {});
    const floods = [ask("flooder"), ask("flooder")];
    const kept = ask("neighbour");
    await pollUntil(async () => (await admin.listRunning()).length === 3);
    await using page = await traffic.console.visit("/");
    const presses = await countPresses(page);
    await page.getByRole("link", { name: /tokens\/s|places/ }).click();
    await page.getByRole("radio", { name: "By user" }).check();
    await page.getByRole("button", { name: "Stop the requests of flooder" }).click();
    await page.getByText("Switched off, the user gets no more").waitFor();
    await page.getByRole("button", { name: "Switch off and end" }).click();
    await page.getByText("1 user is off, and what ran was ended").waitFor();
    expect(await presses()).toBe(4);
    await Promise.all(floods);
    expect((await traffic.chat({}, "tokens=1", key, { "x-who": "flooder" })).status).toBe(403);
    expect(await admin.listRunning()).toMatchObject([{ user_name: "neighbour", key_name: "front end" }]);
    await page.getByRole("button", { name: "Stop the requests of neighbour" }).click();
    await page.getByRole("button", { name: "End all 1" }).click();
    await kept;
    expect((await traffic.chat({}, "tokens=1", key, { "x-who": "neighbour" })).status).toBe(200);
  });
});
