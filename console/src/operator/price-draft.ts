import type { Prices } from "../queries.ts";

/** The prices as they are typed. */
export interface ModelPriceDraft {
  pattern: string;
  validFrom: string;
  input: string;
  cachedInput: string;
  output: string;
}

/** The fields of the prices of a model. */
export const modelPriceFields = [
  { field: "input", label: "Input", isOptional: false },
  { field: "cachedInput", label: "Input from cache", isOptional: true },
  { field: "output", label: "Output", isOptional: false },
] as const;

export const newModelPrice = (pattern: string, validFrom: string): ModelPriceDraft => ({
  pattern,
  validFrom,
  input: "",
  cachedInput: "",
  output: "",
});

interface EnergyPriceDraft {
  validFrom: string;
  perKwh: string;
}

export interface PriceDraft {
  currency: string;
  models: ModelPriceDraft[];
  energy: EnergyPriceDraft[];
}

export const draftOf = ({ currency, models, energy }: Prices): PriceDraft => ({
  currency: currency ?? "",
  models: models.map((price) => ({
    pattern: price.pattern,
    validFrom: price.valid_from,
    input: String(price.input),
    cachedInput: price.cached_input === null ? "" : String(price.cached_input),
    output: String(price.output),
  })),
  energy: energy.map((price) => ({ validFrom: price.valid_from, perKwh: String(price.per_kwh) })),
});

/** The form's own checks have made sure that required fields hold numbers and days. */
export const pricesOf = ({ currency, models, energy }: PriceDraft): Prices => ({
  currency: currency.trim() === "" ? null : currency.trim().toUpperCase(),
  models: models.map(({ pattern, validFrom, input, cachedInput, output }) => ({
    pattern: pattern.trim(),
    valid_from: validFrom,
    input: Number(input),
    cached_input: cachedInput.trim() === "" ? null : Number(cachedInput),
    output: Number(output),
  })),
  energy: energy.map(({ validFrom, perKwh }) => ({ valid_from: validFrom, per_kwh: Number(perKwh) })),
});
