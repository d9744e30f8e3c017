import { parseArgs } from "node:util";
import { startSimulator } from "../support/simulator/simulator.ts";

// The simulated backend in its own process, so that a benchmark can pin it to a core and measure only the rest.
const { values } = parseArgs({
  options: {
    port: { type: "string", default: "0" },
    rate: { type: "string", default: "0" },
    tokens: { type: "string", default: "64" },
    model: { type: "string", multiple: true, default: [] },
  },
});

const simulator = startSimulator({
  port: Number(values.port),
  framesPerSecond: Number(values.rate),
  defaultOutputTokens: Number(values.tokens),
  models: values.model,
  recordRequests: 0,
});
console.log(JSON.stringify({ url: simulator.url, port: simulator.port, pid: process.pid }));

const reportAndExit = (): void => {
  console.log(JSON.stringify(simulator.stats()));
  process.exit(0);
};
process.once("SIGTERM", reportAndExit);
process.once("SIGINT", reportAndExit);
// Prints the sums without ending the simulator.
process.on("SIGUSR2", () => console.log(JSON.stringify(simulator.stats())));
