import { type NavigateOptions, useSearchParams } from "@solidjs/router";
import { createStore } from "solid-js/store";
import { mayBeSecret } from "./may-be-secret.ts";

type UrlParameters<Name extends string> = { readonly [Parameter in Name]?: string };
type SetUrlParameters = (changed: Record<string, string | undefined>, options?: Partial<NavigateOptions>) => void;

/** Those that people type, or paste a key into. */
const typed: ReadonlySet<string> = new Set(
  "q model backend path client class address id actor action target".split(" "),
);

/**
 * The URL's parameters. Of a repeated one the router returns an array, although its types do not say so: here its first value.
 * A typed text that may be a secret is kept here alone, and never written to the URL.
 */
export function useUrlParameters<Name extends string>(): [UrlParameters<Name>, SetUrlParameters] {
  const [parameters, setParameters] = useSearchParams();
  const [kept, setKept] = createStore<Record<string, string | undefined>>({});
  const first = new Proxy(parameters, {
    get(all, name: string) {
      const value = kept[name] ?? all[name];
      return Array.isArray(value) ? value[0] : value;
    },
  });
  const set: SetUrlParameters = (changed, options) => {
    const names = Object.keys(changed);
    const isKept = (name: string): boolean => typed.has(name) && mayBeSecret(changed[name] ?? "");
    const select = (areKept: boolean): typeof changed =>
      Object.fromEntries(names.map((name) => [name, isKept(name) === areKept ? changed[name] : undefined]));
    setKept(select(true));
    setParameters(select(false), options);
  };
  return [first as UrlParameters<Name>, set];
}
