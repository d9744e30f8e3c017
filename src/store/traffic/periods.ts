import { type SQL, sql } from "drizzle-orm";
import { bucketFloor, minutesPerHour } from "../../time/seoul.ts";
import type { TrafficRange } from "./contract.ts";

// Rows of traffic are of a minute or of an hour, whichever the range asks for.

const unitOf = ({ byHour }: TrafficRange): number => (byHour ? minutesPerHour : 1);

export const isWithin = (period: SQL, range: TrafficRange): SQL =>
  sql`${period} >= ${Math.floor(range.from / unitOf(range))} and ${period} < ${Math.ceil(range.to / unitOf(range))}`;

/** The first minute of the bucket that a minute or an hour belongs to. */
export const bucketOf = (period: number, range: TrafficRange): number =>
  bucketFloor(period * unitOf(range), range.bucketMinutes);
