export const readme = await Bun.file(new URL("../../README.md", import.meta.url)).text();

/** The README's code blocks in this language, in order. */
export const readmeBlocks = (language: string): string[] =>
  [...readme.matchAll(/^```(\w+)\n(.*?)^```$/gms)].flatMap(([, of, text]) => (of === language ? [text ?? ""] : []));
