import { type Environment, variableNames } from "../config/config.ts";

/** Variables of other programs rarely have these prefixes and a similar rest, so more misspellings are recognised. */
const ownPrefixes = ["PROXY_", "ADMIN_", "METRICS_", "MAX_"];

/** Shorter names are too near to those of other programs. */
const minLength = 8;

/**
 * Variables that are not settings but look like one: a misspelt setting would be ignored silently.
 * @returns each with the setting that was probably meant
 */
export function findMisspeltSettings(environment: Environment): { given: string; meant: string }[] {
  const given = Object.keys(environment).filter((name) => !variableNames.includes(name));
  return given.flatMap((name) => {
    const meant = variableNames.find((known) => isNear(name.toUpperCase(), known));
    return meant === undefined ? [] : [{ given: name, meant }];
  });
}

function isNear(name: string, known: string): boolean {
  if (known.length < minLength) return false;
  const hasPrefix = ownPrefixes.some((prefix) => name.startsWith(prefix) && known.startsWith(prefix));
  return editDistance(name, known) <= (hasPrefix ? Math.floor(known.length / 4) : 1);
}

/** Insertions, deletions, replacements, and swaps of two neighbours. */
function editDistance(left: string, right: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let row = 1; row <= left.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= right.length; column += 1) {
      const replaced = (previous[column - 1] ?? 0) + (left[row - 1] === right[column - 1] ? 0 : 1);
      const edited = Math.min(replaced, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1);
      const isSwap = left[row - 1] === right[column - 2] && left[row - 2] === right[column - 1];
      current.push(isSwap ? Math.min(edited, (beforePrevious[column - 2] ?? 0) + 1) : edited);
    }
    [beforePrevious, previous] = [previous, current];
  }
  return previous[right.length] ?? 0;
}
