import { type Metric, type MetricObject, type MetricObjectWithValues, type MetricValue, Registry } from "prom-client";

/** Formatting so many takes a millisecond or two; streams run between two portions. */
const seriesPerPortion = 500;

/** `registry.metrics()` formats all series at once: those of 10,000 keys take a third of a second. */
export async function metricsText(registry: Registry): Promise<string> {
  const texts: string[] = [];
  for (const metric of registry.getMetricsAsArray()) {
    await othersTurn();
    texts.push(await textOf(metric as Readable));
  }
  return `${texts.join("\n\n")}\n`;
}

interface Readable extends MetricObject {
  get(): Promise<MetricObjectWithValues<MetricValue<string>>>;
  /** Histograms have a shape of their own for their text. */
  getForPromString?: Readable["get"];
}

async function textOf(metric: Readable): Promise<string> {
  const read = await (metric.getForPromString?.() ?? metric.get());
  const texts = [await formatted({ ...read, values: read.values.slice(0, seriesPerPortion) })];
  for (let at = seriesPerPortion; at < read.values.length; at += seriesPerPortion) {
    await othersTurn();
    const text = await formatted({ ...read, values: read.values.slice(at, at + seriesPerPortion) });
    texts.push(text.split("\n").slice(headLines).join("\n"));
  }
  return texts.join("\n");
}

/** The help and the type. */
const headLines = 2;

async function formatted(read: Awaited<ReturnType<Readable["get"]>>): Promise<string> {
  const registry = new Registry();
  registry.registerMetric({ name: read.name, get: async () => read } as unknown as Metric);
  return (await registry.metrics()).trimEnd();
}

const othersTurn = (): Promise<void> => new Promise(setImmediate);
