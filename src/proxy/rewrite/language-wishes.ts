export interface Wish {
  for: "chinese or japanese" | "another" | "nothing";
  /** Meant for the turns to come as well ("always answer in Japanese"), not for this one alone ("translate this"). */
  standing: boolean;
}

/** What a turn asks the answer to be written in. */
export function wishIn(_text: string): Wish {
  return { for: "nothing", standing: false };
}
