/** Undefined for what is no JSON, or nested too deep for the runtime. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
