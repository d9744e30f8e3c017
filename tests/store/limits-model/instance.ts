import { createAdmissions } from "../../../src/admission/admission.ts";
import { createLedger } from "../../../src/ledger/ledger.ts";
import { createLog } from "../../../src/log/log.ts";
import { openStore } from "../../../src/store/open.ts";
import type { Admission } from "../../../src/domain/admissions.ts";
import { limitNames } from "../../../src/domain/limits.ts";
import type { CountedFor } from "../../../src/domain/usage.ts";
import type { FromInstance, InstanceOptions, ReportedUse, ToInstance } from "./messages.ts";

/*
 * One instance of the model: what the program does between a request and its limits, without HTTP. The process that started
 * it is its clients and its backend.
 */
const options: InstanceOptions = JSON.parse(process.argv[2] ?? "");
const clock = (): number => Date.now() + options.skewMs;
const tell = (message: FromInstance): void => void process.send?.(message);
const log = createLog({ level: "warn", format: "json", clock, write: (text) => tell({ kind: "warned", text }) });
const store = await openStore({ dataDir: options.dataDir, databaseUrl: options.databaseUrl, clock, log });
const ledger = createLedger({ store: store.usage, clock, log });
const { beatMs, deadAfterMs, waitLimitMs } = options;
const monotonic = (): number => performance.now();
const admissions = createAdmissions({
  store: store.limits,
  monotonic,
  clock,
  log,
  beatMs,
  deadAfterMs,
  ...(waitLimitMs === undefined ? {} : { waitLimitMs }),
  areCountsWaiting: ledger.areCountsWaiting,
});
const running = new Map<number, { of: CountedFor; admission: Admission }>();

async function ask({ number, of, subjects, tokens }: ToInstance & { kind: "ask" }): Promise<void> {
  const askedAt = Date.now();
  const admission = await admissions.admit(subjects, tokens);
  const { refusedBy, at: by } = admission;
  const used = subjects.map(({ limits }, at) => {
    const reported: ReportedUse = {};
    for (const name of limitNames) if (limits[name] !== null) reported[name] = admission.used(name, at);
    return reported;
  });
  if (refusedBy === undefined) running.set(number, { of, admission });
  tell({ kind: "decided", number, askedAt, decidedAt: Date.now(), refusedBy, at: by, used });
}

/** A response waits no longer for its commit, with some leeway. */
const maxCommitMs = 900;

async function end({ number, tokens, isSent }: ToInstance & { kind: "respond" }): Promise<void> {
  const request = running.get(number);
  if (request === undefined) return;
  running.delete(number);
  const { of, admission } = request;
  const recordedAt = monotonic();
  if (tokens !== null) {
    const counted = { ...of, closedAt: clock(), inputTokens: tokens, outputTokens: 0 };
    await ledger.record({ ...counted, admission: admission.handOver() });
  }
  if (isSent) admission.end();
  else admission.cancel();
  const mayWait = ledger.areCountsWaiting() || monotonic() - recordedAt >= maxCommitMs;
  tell({ kind: "ended", number, at: Date.now(), mayWait });
}

process.on("message", (message: ToInstance) => void (message.kind === "ask" ? ask(message) : end(message)));
process.on("disconnect", () => process.exit());
tell({ kind: "ready" });
