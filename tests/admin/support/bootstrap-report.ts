import { bootstrapAdmin } from "../../../src/admin/session/bootstrap.ts";
import { createLog } from "../../../src/log/log.ts";
import { openStore } from "../../../src/store/open.ts";

// One of several processes that start at once on one database. Prints its signing key and what it showed the operator.

const [dataDir = "", databaseUrl = ""] = process.argv.slice(2);
const log = createLog({ level: "error", format: "json", clock: Date.now, write: () => {} });
const store = await openStore({
  dataDir,
  databaseUrl: databaseUrl === "" ? undefined : databaseUrl,
  clock: Date.now,
  log,
});
const printed: string[] = [];
const { signingKey } = await bootstrapAdmin({
  store,
  dataDir,
  config: { username: "admin", password: undefined, secretKey: undefined },
  print: (text) => printed.push(text),
});
await store.close();
process.stdout.write(JSON.stringify({ signingKey, printed }));
