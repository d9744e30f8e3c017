/** Which nodes a node leads to. */
export type Graph = ReadonlyMap<string, ReadonlySet<string>>;

/** The sets of nodes of which each leads to all others. */
export function findCircles(graph: Graph): string[][] {
  const reached = new Map([...graph.keys()].map((node) => [node, reachedFrom(graph, node)]));
  const leadsTo = (from: string, to: string): boolean => reached.get(from)?.has(to) === true;
  const circles = [...graph.keys()]
    .filter((node) => leadsTo(node, node))
    .map((node) => [...graph.keys()].filter((other) => leadsTo(node, other) && leadsTo(other, node)));
  return circles.filter((circle, index) => circles.findIndex(([first]) => first === circle[0]) === index);
}

/** All nodes that a node leads to. */
export function reachedFrom(graph: Graph, start: string): Set<string> {
  const reached = new Set<string>();
  const waiting = [...(graph.get(start) ?? [])];
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    if (reached.has(node)) continue;
    reached.add(node);
    waiting.push(...(graph.get(node) ?? []));
  }
  return reached;
}
