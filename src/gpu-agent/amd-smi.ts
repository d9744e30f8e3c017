import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { findMeasured, type ToolReading } from "./gpu-entry.ts";

/** ROCm 6 and later; flags and field names from "AMD SMI CLI tool usage" in the ROCm documentation. */
export const amdSmiMetricArguments = ["metric", "--usage", "--power", "--temperature", "--mem-usage", "--json"];
export const amdSmiStaticArguments = ["static", "--asic", "--json"];

type Json = Readonly<Record<string, unknown>>;

const JsonObject = Type.Record(Type.String(), Type.Unknown());
const Gpu = Type.Intersect([Type.Object({ gpu: Type.Integer({ minimum: 0 }) }), JsonObject]);

/** They differ by release and chip. */
const powerNames = ["socket_power", "current_socket_power", "average_socket_power"];

/**
 * Reads `amd-smi metric --json`.
 * @param names by GPU, from `amdSmiNames`
 * @throws SyntaxError if the text is not JSON
 */
export function amdSmiReadings(metric: string, names: ReadonlyMap<number, string>): ToolReading[] {
  return listGpus(metric).map(({ gpu, ...sections }) => {
    const temperature = section(sections, "temperature");
    const memory = section(sections, "mem_usage");
    const power = section(sections, "power");
    return {
      index: gpu,
      name: names.get(gpu) ?? "AMD GPU",
      power_draw_w: powerNames.map((one) => findMeasure(power[one])).find((watts) => watts !== undefined),
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
  return Array.isArray(list) ? list.filter((gpu) => Value.Check(Gpu, gpu)) : [];
}

function section(sections: Json, name: string): Json {
  const found = sections[name];
  return Value.Check(JsonObject, found) ? found : {};
}

/** `{ "value": 42, "unit": "W" }`, in some releases the bare value, or "N/A" if the chip lacks the sensor. */
const findMeasure = (measure: unknown): number | undefined =>
  findMeasured(Value.Check(JsonObject, measure) ? measure["value"] : measure);
