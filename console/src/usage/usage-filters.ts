export const filterNames = ["key", "team", "user", "model", "tag", "owner"] as const;
export type FilterName = (typeof filterNames)[number];

/** Which usage, as the URL says it: ids of keys, teams and users, names of others. */
export type UsageFilter = Readonly<Partial<Record<FilterName, string>>>;

export const allUsage: UsageFilter = {};

/** An id of the URL; of what is no id, one that nothing has. */
const idOf = (text: string): number => (/^\d{1,15}$/.test(text) ? Number(text) : Number.MAX_SAFE_INTEGER);

/** The parameters of the API. */
export const filterParameters = ({ key, team, user, ...texts }: UsageFilter) => ({
  ...(key !== undefined && { key_id: idOf(key) }),
  ...(team !== undefined && { team_id: idOf(team) }),
  ...(user !== undefined && { user_id: idOf(user) }),
  ...texts,
});
