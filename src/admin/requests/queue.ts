import { type Static, Type as t } from "@sinclair/typebox";
import type { BackendStatus } from "../../domain/backends.ts";
import type { Catalog } from "../../domain/models.ts";
import type { RunningRequest } from "../../domain/requests.ts";
import * as schema from "../http/schemas.ts";

export const queueBody = t.Object(
  {
    places: schema.nullable(
      t.Integer({ minimum: 0, description: "Null: a backend that is in gets any number of requests" }),
    ),
    used: schema.count,
    waiting: t.Integer({ minimum: 0, description: "For the limits of their key, or for a place at a backend" }),
  },
  { description: "The places at the backends, of all processes of this instance" },
);
export const placeBody = t.Object(
  { position: t.Integer({ minimum: 1 }), of: t.Integer({ minimum: 1 }) },
  { description: "Of a request that waits: where it stands among those for the same model, by age" },
);
type Place = Static<typeof placeBody>;

/** What waits, and what for. A backend that is out or drained offers no place. */
export function queueOf(
  { backends }: Pick<Catalog, "backends">,
  states: readonly BackendStatus[],
  running: readonly RunningRequest[],
): Static<typeof queueBody> {
  const offering = backends.filter(({ name }) => states.find((one) => one.name === name)?.state === "in");
  // Without states it is not known which backends have a limit.
  const isLimited = states.length > 0 && offering.every(({ maxConcurrency }) => maxConcurrency !== undefined);
  return {
    places: isLimited ? offering.reduce((sum, { maxConcurrency = 0 }) => sum + maxConcurrency, 0) : null,
    used: states.reduce((sum, { inFlight }) => sum + inFlight, 0),
    waiting: running.filter(isQueued).length,
  };
}

const isQueued = ({ state }: RunningRequest): boolean => state === "queued" || state === "prefill";

/** @param running oldest first */
export function placesOf(running: readonly RunningRequest[]): ReadonlyMap<RunningRequest, Place> {
  const places = new Map<RunningRequest, Place>();
  for (const line of Map.groupBy(running.filter(isQueued), ({ model = "" }) => model).values()) {
    for (const [index, one] of line.entries()) places.set(one, { position: index + 1, of: line.length });
  }
  return places;
}
