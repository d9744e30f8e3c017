/** Longer ones are not ids. */
const maxLength = 512;

/**
 * The id under which the backend stores a response of the Responses API.
 * @param document the response itself, or an event that carries it
 */
export function findResponseId(document: unknown): string | undefined {
  if (!isObject(document)) return undefined;
  const { id } = isObject(document.response) ? document.response : document;
  return typeof id === "string" && id.length > 0 && id.length <= maxLength ? id : undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
