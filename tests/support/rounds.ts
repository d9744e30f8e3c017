/** How often a proof by load causes its fault: three times in the gate, and TOLLGATE_ROUNDS times in `npm run test:load`. */
export const rounds = Number(process.env["TOLLGATE_ROUNDS"] ?? 3);
