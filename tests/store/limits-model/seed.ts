/** `TOLLGATE_SEED` repeats the plan of a run; what happens at once in it differs. */
export const seed = Number(process.env["TOLLGATE_SEED"] ?? Date.now() % 1_000_000);

process.stderr.write(`TOLLGATE_SEED=${seed}\n`);
