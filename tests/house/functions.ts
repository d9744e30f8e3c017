import { type ESTree, parseSync, Visitor } from "vite";

export interface SourceFunction {
  file: string;
  /** What it is called in the source; `anonymous` for an argument. */
  name: string;
  line: number;
  lines: number;
  body: { start: number; end: number; isExpression: boolean };
}

type FunctionNode = ESTree.Function | ESTree.ArrowFunctionExpression;

/**
 * Every function of a file that has a body: methods, arrows and inner ones too.
 * @throws Error on a syntax error
 */
export function listFunctions(file: string, source: string): SourceFunction[] {
  const { program, errors } = parseSync(file, source);
  if (errors[0] !== undefined) throw new Error(`${file}: ${errors[0].message}`);
  const names = new Map<unknown, string>();
  const functions: SourceFunction[] = [];
  const lineAt = lineCounter(source);
  const see = (node: FunctionNode): void => {
    const { id, body, start, end } = node;
    if (body === null) return;
    const [line, lastLine] = [lineAt(start), lineAt(end)];
    functions.push({
      file,
      name: id?.name ?? names.get(node) ?? "anonymous",
      line,
      lines: lastLine - line + 1,
      body: { start: body.start, end: body.end, isExpression: body.type !== "BlockStatement" },
    });
  };
  new Visitor({
    VariableDeclarator: ({ id, init }) => void names.set(init, nameOf(id)),
    Property: ({ key, value }) => void names.set(value, nameOf(key)),
    MethodDefinition: ({ key, value }) => void names.set(value, nameOf(key)),
    FunctionDeclaration: see,
    FunctionExpression: see,
    ArrowFunctionExpression: see,
  }).visit(program);
  return functions;
}

const nameOf = (node: ESTree.Node): string => (node.type === "Identifier" ? node.name : "anonymous");

/** @returns the line of an offset, from 1 */
function lineCounter(source: string): (offset: number) => number {
  const starts = [0, ...[...source.matchAll(/\n/g)].map(({ index }) => index + 1)];
  return (offset) => starts.findLastIndex((start) => start <= offset) + 1;
}

/**
 * The source with a call at the start of every function: `CALLED("FILE:LINE:NAME");`. Line numbers stay.
 * @param called an expression that is a function
 */
export function instrument(file: string, source: string, called: string): string {
  const edits = listFunctions(file, source).flatMap(({ name, line, body }) => {
    const call = `${called}(${JSON.stringify(`${file}:${line}:${name}`)})`;
    if (!body.isExpression) return [{ at: body.start + 1, text: `${call};` }];
    return [
      { at: body.start, text: `(${call},` },
      { at: body.end, text: ")" },
    ];
  });
  // From the end, so that offsets stay right; of two at one place the inner one, which comes later, is written first.
  return edits
    .toSorted((left, right) => right.at - left.at)
    .reduce((text, { at, text: inserted }) => text.slice(0, at) + inserted + text.slice(at), source);
}
