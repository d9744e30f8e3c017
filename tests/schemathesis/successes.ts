/** One exchange with the server. */
export interface Exchange {
  method: string;
  /** The URL's pathname. */
  path: string;
  status: number;
}

const methods = new Set(["get", "put", "post", "delete", "options", "head", "patch", "trace"]);

/** @returns the operations of an OpenAPI document, each with whether an exchange of it succeeded */
export function successesOf(
  paths: Readonly<Record<string, object>>,
  exchanges: readonly Exchange[],
): { operation: string; succeeded: boolean }[] {
  const succeeded = exchanges.filter(({ status }) => status >= 200 && status < 300);
  return Object.entries(paths).flatMap(([template, item]) => {
    const matches = patternOf(template);
    return Object.keys(item)
      .filter((name) => methods.has(name))
      .map((name) => {
        const method = name.toUpperCase();
        const isOne = (one: Exchange): boolean => one.method === method && matches.test(one.path);
        return { operation: `${method} ${template}`, succeeded: succeeded.some(isOne) };
      });
  });
}

/** @param template such as `/api/keys/{id}` */
const patternOf = (template: string): RegExp =>
  new RegExp(
    `^${template
      .split(/\{[^}]*\}/)
      .map((part) => RegExp.escape(part))
      .join("[^/]+")}$`,
  );
