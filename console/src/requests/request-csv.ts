import { type RequestMemberName, memberFields } from "../../../src/domain/request-fields.ts";
import { counters } from "../lib/counters.ts";
import { csvOf } from "../lib/csv.ts";
import type { LoggedRequest } from "./queries.ts";

/** They came later. A column keeps its place, so that whoever reads it by that does not notice new ones. */
const late: readonly RequestMemberName[] = ["sends", "reason", "expected_cached_tokens", "conversation", "cache_loss"];
const names = memberFields.map(({ name }) => name);
const upTo = (name: RequestMemberName): RequestMemberName[] =>
  names.slice(0, names.indexOf(name) + 1).filter((one) => !late.includes(one));
const columns = [...new Set([...upTo("input_tokens"), ...counters, ...upTo("max_tokens_to"), ...late, ...names])];

/** The API's list, with its field names. */
export const requestCsv = (requests: readonly LoggedRequest[]): string => csvOf(columns, requests, " ");
