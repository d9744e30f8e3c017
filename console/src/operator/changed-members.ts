interface ChangedMember {
  name: string;
  /** As JSON; undefined: there was none. */
  before: string | undefined;
  after: string | undefined;
}

/** What a row of the record of changes says of each member of its target. Texts that were cut off stay whole. */
export function changedMembers(row: { before: string | null; after: string | null }): ChangedMember[] {
  const [before, after] = [membersOf(row.before), membersOf(row.after)];
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].map((name) => {
    return { name, before: textOf(before[name]), after: textOf(after[name]) };
  });
}

function membersOf(json: string | null): Record<string, unknown> {
  if (json === null) return {};
  try {
    return JSON.parse(json) as Record<string, unknown>;
  } catch {
    return { "": `${json}…` };
  }
}

const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : JSON.stringify(value));
