// What keys and teams with limits may use, over all processes. A process has a lease of each: what its requests in flight hold,
// and, of busy ones, requests that may come ahead of the database within one second. All limits of a request hold together.
//
//   request -> ahead: admitted at once
//           -> waiting -> batch -> admitted, refused, or asked again while another process may give back what it has unused
//           -> decided by this process alone, once it has waited for `waitLimitMs`, until the database answers again
//
// Natural group commit, as in the ledger: while a batch is written, the requests for the next one gather.
//
// Invariants. The database has at least what a lease holds: it hears of more before that is used, and of less later. A batch
// says how much is held in all, so that a repeated one takes nothing twice; the requests of one whose reply was lost count
// twice for a minute. At most one batch is under way.
//
// After `kill -9`: what was held is charged and given back by the others after `deadAfterMs`; requests count for their minute.
// Removed: a row for each request, spare admissions and reserves, which were three mechanisms for one idea.

import { endWait, enqueue, startUpkeep } from "./batches.ts";
import { admittedAlone, decideAlone, releaseCounted, writeAllAgain } from "./degraded.ts";
import { createInstanceWatch } from "./instance-watch.ts";
import {
  type AdmissionsOptions,
  type Claim,
  databaseNow,
  dropAhead,
  groupOf,
  newLease,
  newState,
  type State,
  takeAhead,
  unlimited,
} from "./process-leases.ts";
import { limitsAt } from "../domain/limits.ts";
import { within } from "../time/wait.ts";
import type { Admission, Admit } from "../domain/admissions.ts";

/** Admits the requests of keys with limits. */
export type Admissions = ReturnType<typeof createAdmissions>;

export function createAdmissions(options: AdmissionsOptions) {
  const begun = newState(options);
  const state: State = {
    ...begun,
    watch: createInstanceWatch({
      ...begun,
      onListed: () => writeAllAgain(state),
      onBeat: (instances) => onBeat(state, instances),
    }),
    startUpkeep,
  };
  const admit: Admit = (subjects, tokens, mayWait = false, leastTokens, early) => {
    // In the same batch, so that nobody comes between.
    early?.cancel();
    if (state.closed) return unlimited;
    const claims: Claim[] = [];
    for (const { id, limits } of subjects) {
      const lease = state.leases.getOrInsertComputed(id, newLease);
      claims.push({ lease, limits: limits.limits_extra ? limitsAt(limits, databaseNow(state)) : limits });
    }
    const asked = { claims, tokens, mayWait, leastTokens, isAdmitted: early !== undefined };
    const group = groupOf(state, claims);
    const ahead = takeAhead(state, group, asked);
    if (ahead !== undefined) return ahead;
    if (state.degraded) return decideAlone(state, group, asked);
    const settled = Promise.withResolvers<Admission>();
    enqueue(state, group, { ...asked, tries: 0, isDecided: false, settled });
    return settled.promise;
  };
  return {
    admit,
    /** Whether this process decides alone, because the database does not answer. */
    isDegraded: () => state.degraded,
    /** While it does: the keys and teams that it decides on, and how many requests of each it has admitted in the last minute. */
    decidedAlone: () => (state.degraded ? admittedAlone(state) : undefined),
    /** Whether other processes admit requests too, and all of them know of each other. */
    hasOthers: () => state.instances > 1 && !state.degraded,
    /** Gives back what this process holds. */
    close: () => close(state),
  };
}

function onBeat(state: State, instances: number): void {
  state.instances = Math.max(instances, state.processes);
  releaseCounted(state);
  // While this process decides alone, the batch is a trial.
  startUpkeep(state, state.degraded);
}

async function close(state: State): Promise<void> {
  clearTimeout(state.upkeepTimer);
  if (!state.degraded && state.leases.size > 0) {
    for (const group of state.changed) dropAhead(group);
    startUpkeep(state, true);
    await within(state.waitLimitMs, state.loop ?? Promise.resolve()).catch(() => {});
  }
  state.closed = true;
  endWait(state);
  // What it cannot give back, other processes release.
  await within(state.waitLimitMs, state.watch.close()).catch(() => {});
}
