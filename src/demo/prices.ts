const validFrom = "2025-01-01";

/** What the operator of the demo entered. */
export const demoPrices = {
  currency: "USD",
  models: [
    { pattern: "tollgate-demo", valid_from: validFrom, input: 0.6, cached_input: 0.15, output: 2.4 },
    { pattern: "tollgate-demo-small", valid_from: validFrom, input: 0.1, cached_input: null, output: 0.4 },
    { pattern: "*-embedding", valid_from: validFrom, input: 0.02, cached_input: null, output: 0 },
  ],
  energy: [{ valid_from: validFrom, per_kwh: 0.14 }],
};
