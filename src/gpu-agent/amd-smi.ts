import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import type { ToolReading } from "./gpu-entry.ts";

/** ROCm 6 and later; flags and field names from "AMD SMI CLI tool usage" in the ROCm documentation. */
export const amdSmiMetricArguments = ["metric", "--usage", "--power", "--temperature", "--mem-usage", "--json"];
export const amdSmiStaticArguments = ["static", "--asic", "--json"];

type Json = Readonly<Record<string, unknown>>;

const JsonObject = Type.Record(Type.String(), Type.Unknown());
const Gpus = Type.Array(Type.Intersect([Type.Object({ gpu: Type.Integer({ minimum: 0 }) }), JsonObject]));

/**
 * Reads `amd-smi metric --json`.
 * @param names by GPU, from `amdSmiNames`
 * @throws SyntaxError if the text is not JSON
 */
export function amdSmiReadings(metric: string, names: ReadonlyMap<number, string>): ToolReading[] {
  return listGpus(metric).map(({ gpu, ...sections }) => {
    const temperature = section(sections, "temperature");
    const memory = section(sections, "mem_usage");
    return {
      index: gpu,
      name: names.get(gpu) ?? "AMD GPU",
      power_draw_w: findMeasure(section(sections, "power")["socket_power"]),
      // Instinct cards have no edge sensor.
      temp_c: findMeasure(temperature["edge"]) ?? findMeasure(temperature["hotspot"]),
      memory_used_mb: findMeasure(memory["used_vram"]),
      memory_total_mb: findMeasure(memory["total_vram"]),
      utilization_pct: findMeasure(section(sections, "usage")["gfx_activity"]),
    };
  });
}

/** Reads `amd-smi static --asic --json`. @throws SyntaxError if the text is not JSON */
export function amdSmiNames(asic: string): Map<number, string> {
  const names = new Map<number, string>();
  for (const { gpu, ...sections } of listGpus(asic)) {
    const name = section(sections, "asic")["market_name"];
    if (typeof name === "string" && name !== "N/A") names.set(gpu, name);
  }
  return names;
}

/** An array of GPUs; since ROCm 7 it is wrapped in `gpu_data`. */
function listGpus(text: string): (Json & { gpu: number })[] {
  const parsed: unknown = JSON.parse(text);
  const list = Value.Check(JsonObject, parsed) ? parsed["gpu_data"] : parsed;
  return Value.Check(Gpus, list) ? list : [];
}

function section(sections: Json, name: string): Json {
  const found = sections[name];
  return Value.Check(JsonObject, found) ? found : {};
}

/** `{ "value": 42, "unit": "W" }`, in the first releases a bare number, or "N/A" if the chip lacks the sensor. */
function findMeasure(measure: unknown): number | undefined {
  const value = Value.Check(JsonObject, measure) ? measure["value"] : measure;
  return typeof value === "number" ? value : undefined;
}
