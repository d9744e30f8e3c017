import type { AdminDeps } from "../http/deps.ts";
import { Value } from "@sinclair/typebox/value";
import type { Store } from "../../store/store.ts";
import type { ModelPrice } from "../../domain/prices.ts";
import { dayNumberFrom, isDay } from "../../time/seoul.ts";
import type { JsonContext } from "../session/auth.ts";
import type { JsonObject } from "../http/body.ts";
import { bodyParser } from "../http/body-schema.ts";
import { ApiError } from "../http/errors.ts";
import { type PricesBody, pricesBody, pricesRequest } from "./cost-contract.ts";

/** The setting that holds the prices, as JSON. */
export const pricesSetting = "prices";

const noPrices: PricesBody = { currency: null, models: [], energy: [] };

export async function readPrices({ settings }: Pick<Store, "settings">): Promise<PricesBody> {
  const text = await settings.find(pricesSetting);
  return text === undefined ? noPrices : (JSON.parse(text) as PricesBody);
}

/** A day is parsed once, since thousands of look-ups follow. */
export const modelPricesOf = ({ models }: PricesBody): ModelPrice[] =>
  models.map(({ pattern, valid_from: from, input, cached_input: cached, output }) => ({
    pattern,
    fromDay: dayNumberFrom(from),
    input,
    cached,
    output,
  }));

export const getPrices =
  ({ store }: AdminDeps) =>
  (): Promise<PricesBody> =>
    readPrices(store);

export const setPrices =
  ({ store, log }: AdminDeps) =>
  async ({ json, actor, by }: JsonContext): Promise<PricesBody> => {
    const prices = parsePrices(json);
    await store.settings.set(pricesSetting, JSON.stringify(prices), by);
    log.info("Prices changed", { ...actor, models: prices.models.length, currency: prices.currency });
    return prices;
  };

const parsePricesRequest = bodyParser(pricesRequest);

/** @throws ApiError that names the first wrong field */
function parsePrices(json: JsonObject | ApiError): PricesBody {
  const { currency = null, models = [], energy = [] } = parsePricesRequest(json);
  for (const [name, list] of Object.entries({ models, energy })) {
    const wrong = list.findIndex(({ valid_from: from }) => !isDay(from));
    if (wrong !== -1) throw new ApiError(400, `${name}.${wrong}.valid_from is invalid`);
  }
  if (currency === null && models.length + energy.length > 0) {
    throw new ApiError(400, "currency is required, such as EUR");
  }
  // Without unknown fields: the prices are stored.
  return Value.Clean(pricesBody, { currency, models, energy }) as PricesBody;
}
