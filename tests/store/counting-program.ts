import { writeSync } from "node:fs";
import { createLedger } from "../../src/ledger.ts";
import { createLog } from "../../src/log/log.ts";
import { openStore } from "../../src/store/open.ts";

/**
 * Counts receipts until it is killed, and says on standard output, one byte each, which ones it was told are recorded.
 * Arguments: the data folder, and how many are under way at a time.
 */
const [dataDir = "", concurrency = ""] = process.argv.slice(2);
const log = createLog({ level: "warn", format: "json", clock: Date.now, write: (line) => writeSync(2, line) });
const store = await openStore({ dataDir, clock: Date.now, log });
const ledger = createLedger({ store: store.usage, clock: Date.now, log });
await store.keys.create({ name: "counted", key: "counted", createdAt: Date.now() });

async function count(): Promise<never> {
  for (;;) {
    await ledger.record({ keyId: 1, closedAt: Date.now(), inputTokens: 3, outputTokens: 2 });
    writeSync(1, ".");
  }
}

await Promise.all(Array.from({ length: Number(concurrency) }, count));
