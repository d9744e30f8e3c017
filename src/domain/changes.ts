/** From the least to the most. A member has own keys, and sees nothing of others. */
export const roles = ["member", "viewer", "admin"] as const;
export type Role = (typeof roles)[number];

/** Who changes what. A method of the store that gets one records what it changes, in the same transaction. */
export interface Change {
  actor: string;
  role: Role;
  address: string | null;
  /** `noun.verb`, such as `key.update`; the noun is that of the target. */
  action: string;
  /** Of the target; that of what a method creates is known afterwards. */
  id?: string;
  requestId: string | null;
  /** Of several that one action of a user makes. */
  changeId: string | null;
}
