/** Whether a text may hold an API key: the address stands in the browser's history and in the logs of web servers in front. */
export const mayBeSecret = (text: string): boolean =>
  text.split(/\s+/).some((word) => /^[^.@]{16,}$/.test(word) || /^[\da-f]{12,}$/i.test(word));
