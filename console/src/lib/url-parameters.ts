import { type NavigateOptions, useSearchParams } from "@solidjs/router";

type UrlParameters<Name extends string> = { readonly [Parameter in Name]?: string };
type SetUrlParameters = (changed: Record<string, string | undefined>, options?: Partial<NavigateOptions>) => void;

/** The URL's parameters. Of a repeated one the router returns an array, although its types do not say so: here its first value. */
export function useUrlParameters<Name extends string>(): [UrlParameters<Name>, SetUrlParameters] {
  const [parameters, setParameters] = useSearchParams();
  const first = new Proxy(parameters, {
    get(all, name: string) {
      const value = all[name];
      return Array.isArray(value) ? value[0] : value;
    },
  });
  return [first as UrlParameters<Name>, setParameters];
}
