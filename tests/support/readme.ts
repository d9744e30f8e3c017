export const readme = await Bun.file(new URL("../../README.md", import.meta.url)).text();

/** The README's code blocks in this language, in order. */
export const readmeBlocks = (language: string): string[] =>
  [...readme.matchAll(/^```(\w+)\n(.*?)^```$/gms)].flatMap(([, of, text]) => (of === language ? [text ?? ""] : []));

/**
 * The README's configuration of a web server in front of two instances, `gate-1.internal` and `gate-2.internal`. For nginx
 * the README describes it as a change to its first server.
 */
export function readmeBalancer(language: "nginx" | "caddyfile"): string {
  const balancing = readmeBlocks(language).find((block) => block.includes("gate-2.internal")) ?? "";
  if (language === "caddyfile") return balancing;
  const [, directives = ""] = /`(proxy_pass [^`]+)`/.exec(readme) ?? [];
  const [server = ""] = readmeBlocks("nginx");
  return balancing + server.replace(/proxy_pass [^;]+;/, directives);
}
