import { writeSync } from "node:fs";
import { createLedger } from "../../src/ledger/ledger.ts";
import { createLog } from "../../src/log/log.ts";
import { openStore } from "../../src/store/open.ts";

/**
 * Records usage events until it is killed, and writes one byte to standard output for each event that is recorded.
 * Arguments: the data folder, and the number of events to record concurrently.
 */
const [dataDir = "", concurrency = ""] = process.argv.slice(2);
const log = createLog({ level: "warn", format: "json", clock: Date.now, write: (line) => writeSync(2, line) });
const store = await openStore({ dataDir, clock: Date.now, log });
const ledger = createLedger({ store: store.usage, clock: Date.now, log });
await store.keys.create({ name: "counted", key: "counted", createdAt: Date.now() });

async function recordForever(): Promise<never> {
  for (;;) {
    await ledger.record({ keyId: 1, closedAt: Date.now(), inputTokens: 3, outputTokens: 2 });
    writeSync(1, ".");
  }
}

await Promise.all(Array.from({ length: Number(concurrency) }, recordForever));
