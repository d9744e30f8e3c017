import { parseSync } from "vite";

export interface ModuleImport {
  specifier: string;
  /** `import type` or `export type`, or a type `import("…")`: nothing is left of it at run time. */
  isType: boolean;
}

type Node = Readonly<Record<string, unknown>>;

/**
 * Every module that a file names: imports, exports, types, `import()`, `require()` and `new URL("…", import.meta.url)`.
 * @throws Error on a syntax error, and on a module whose name is computed
 */
export function listImports(file: string, source: string): ModuleImport[] {
  const { program, errors } = parseSync(file, source);
  if (errors[0] !== undefined) throw new Error(`${file}: ${errors[0].message}`);
  const imports: ModuleImport[] = [];
  visit(program, (node) => {
    const named = namedModule(node);
    if (named === undefined) return;
    const { value } = named as { value?: unknown };
    if (typeof value !== "string") throw new Error(`${file}: the name of an imported module is computed`);
    imports.push({ specifier: value, isType: isTypeImport(node) });
  });
  return imports;
}

function visit(value: unknown, see: (node: Node) => void): void {
  if (Array.isArray(value)) for (const item of value) visit(item, see);
  else if (typeof value === "object" && value !== null) {
    const node = value as Node;
    see(node);
    for (const child of Object.values(node)) visit(child, see);
  }
}

/** The node of the module's name. */
function namedModule(node: Node): unknown {
  switch (node["type"]) {
    case "ImportDeclaration":
    case "ExportAllDeclaration":
    case "ImportExpression":
    case "TSImportType":
      return node["source"];
    case "ExportNamedDeclaration":
      return node["source"] ?? undefined;
    case "TSExternalModuleReference":
      return node["expression"];
    case "CallExpression":
      return isName(node["callee"], "require") ? argumentsOf(node)[0] : undefined;
    case "NewExpression":
      return isName(node["callee"], "URL") && isModuleUrl(argumentsOf(node)[1]) ? argumentsOf(node)[0] : undefined;
    default:
      return undefined;
  }
}

function isTypeImport(node: Node): boolean {
  return node["type"] === "TSImportType" || node["importKind"] === "type" || node["exportKind"] === "type";
}

const argumentsOf = (node: Node): unknown[] => node["arguments"] as unknown[];

const isName = (node: unknown, name: string): boolean => (node as Node)["name"] === name;

/** `import.meta.url` */
function isModuleUrl(node: unknown): boolean {
  const { object, property } = (node ?? {}) as { object?: Node; property?: Node };
  return object?.["type"] === "MetaProperty" && isName(property, "url");
}
