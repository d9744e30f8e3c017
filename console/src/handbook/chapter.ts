/** A chapter as the build has rendered it. */
export interface Chapter {
  /** The name of its file, and in its address. */
  name: string;
  title: string;
  /** The line that the contents have. */
  summary: string;
  blocks: readonly Block[];
  sections: readonly Section[];
}

export type Block = { html: string } | { code: string; language: string };

/** What stands below a heading, as text for the search. */
export interface Section {
  /** The heading's, in addresses; empty for what stands before the first heading. */
  id: string;
  title: string;
  text: string;
}
