import { Value } from "@sinclair/typebox/value";
import type { Log } from "../../log/log.ts";
import type { Store } from "../../store/store.ts";
import { isDay } from "../../time/seoul.ts";
import type { Actor } from "../session/auth.ts";
import { acceptedBody, type JsonObject } from "../http/body.ts";
import { ApiError } from "../http/errors.ts";
import { type PricesBody, pricesBody } from "../requests/traffic-contract.ts";

/** The setting that holds the prices, as JSON. */
export const pricesSetting = "prices";

const noPrices: PricesBody = { currency: null, models: [], energy: [] };

export interface PricesDeps {
  store: Pick<Store, "settings">;
  log: Log;
}

export async function readPrices({ settings }: PricesDeps["store"]): Promise<PricesBody> {
  const text = await settings.find(pricesSetting);
  return text === undefined ? noPrices : (JSON.parse(text) as PricesBody);
}

export const getPrices =
  ({ store }: Pick<PricesDeps, "store">) =>
  (): Promise<PricesBody> =>
    readPrices(store);

export const setPrices =
  ({ store, log }: PricesDeps) =>
  async ({ json, actor }: { json: JsonObject | ApiError; actor: Actor }): Promise<PricesBody> => {
    const prices = parsePrices(acceptedBody(json));
    await store.settings.set(pricesSetting, JSON.stringify(prices));
    log.info("Prices changed", { ...actor, models: prices.models.length, currency: prices.currency });
    return prices;
  };

/** @throws ApiError that names the first wrong field */
function parsePrices({ currency = null, models = [], energy = [], _csrf = "" }: JsonObject): PricesBody {
  if (typeof _csrf !== "string") throw new ApiError(400, "_csrf is invalid");
  const prices: unknown = { currency, models, energy };
  const cleaned: unknown = Value.Clean(pricesBody, structuredClone(prices));
  const problem = Value.Errors(pricesBody, cleaned).First();
  if (problem !== undefined) throw new ApiError(400, `${problem.path.slice(1).replaceAll("/", ".")} is invalid`);
  const parsed = cleaned as PricesBody;
  for (const [name, list] of Object.entries({ models: parsed.models, energy: parsed.energy })) {
    const wrong = list.findIndex(({ valid_from: from }) => !isDay(from));
    if (wrong !== -1) throw new ApiError(400, `${name}.${wrong}.valid_from is invalid`);
  }
  if (parsed.currency === null && parsed.models.length + parsed.energy.length > 0) {
    throw new ApiError(400, "currency is required, such as EUR");
  }
  return parsed;
}
