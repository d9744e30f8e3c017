import { writeFileSync } from "node:fs";
import { type Simulator, startSimulator } from "./simulator/simulator.ts";
import { findFreePort } from "./free-port.ts";
import { createTempFolder } from "./temp-folder.ts";

/**
 * Simulated backends that can go away and come back, and the file that lists them for the model `m`.
 * @param backends their further members in the file, by name
 */
export function startBackends(backends: Readonly<Record<string, string>>) {
  const folder = createTempFolder();
  const names = Object.keys(backends);
  const ports = new Map(names.map((name) => [name, findFreePort()]));
  const running = new Map<string, Simulator>();
  const start = (name: string): unknown => running.set(name, startSimulator({ port: ports.get(name) ?? 0 }));
  for (const name of names) start(name);
  const lines = Object.entries(backends).map(
    ([name, members]) =>
      `  ${name}: { url: "http://127.0.0.1:${ports.get(name)}"${members === "" ? "" : ", "}${members} }`,
  );
  const file = folder.file("models.yaml");
  writeFileSync(file, `backends:\n${lines.join("\n")}\nmodels:\n  m: { backends: [${names.join(", ")}] }\n`);
  return {
    /** For `MODELS_FILE`. */
    file,
    get(name: string): Simulator {
      const simulator = running.get(name);
      if (simulator === undefined) throw new Error(`${name} does not run`);
      return simulator;
    },
    stop(name: string): void {
      running.get(name)?.stop();
      running.delete(name);
    },
    restart: start,
    [Symbol.dispose]() {
      for (const simulator of running.values()) simulator.stop();
      folder.remove();
    },
  };
}
