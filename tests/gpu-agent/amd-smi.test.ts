import { expect, test } from "bun:test";
import { amdSmiNames, amdSmiReadings } from "../../src/gpu-agent/amd-smi.ts";

const instinct = {
  gpu: 0,
  usage: { gfx_activity: { value: 87, unit: "%" }, umc_activity: { value: 12, unit: "%" } },
  power: { socket_power: { value: 412, unit: "W" }, gfx_voltage: "N/A" },
  temperature: { edge: "N/A", hotspot: { value: 61, unit: "C" }, mem: { value: 55, unit: "C" } },
  mem_usage: { total_vram: { value: 196592, unit: "MB" }, used_vram: { value: 140123, unit: "MB" } },
};

const instinctReading = {
  index: 0,
  name: "AMD Instinct MI300X",
  power_draw_w: 412,
  temp_c: 61,
  memory_used_mb: 140123,
  memory_total_mb: 196592,
  utilization_pct: 87,
};

const names = amdSmiNames(JSON.stringify([{ gpu: 0, asic: { market_name: "AMD Instinct MI300X" } }]));

test("reads an array of GPUs", () => {
  expect(amdSmiReadings(JSON.stringify([instinct]), names)).toEqual([instinctReading]);
});

test("reads an array inside gpu_data", () => {
  expect(amdSmiReadings(JSON.stringify({ gpu_data: [instinct] }), names)).toEqual([instinctReading]);
  const wrapped = JSON.stringify({ gpu_data: [{ gpu: 1, asic: { market_name: "AMD Radeon PRO W7700" } }] });
  expect(amdSmiNames(wrapped)).toEqual(new Map([[1, "AMD Radeon PRO W7700"]]));
});

test("reads bare numbers, and prefers the edge sensor to the hotspot", () => {
  const old = { gpu: 0, power: { socket_power: 20 }, temperature: { edge: 44, hotspot: 50 } };
  expect(amdSmiReadings(JSON.stringify([old]), names)[0]).toMatchObject({ power_draw_w: 20, temp_c: 44 });
});

test("reads other names of power, and numbers with units", () => {
  const gpus = [
    { gpu: 0, power: { current_socket_power: "45 W" }, temperature: { edge: "44 C" } },
    { gpu: 1, power: { socket_power: "N/A", average_socket_power: { value: 30, unit: "W" } } },
  ];
  expect(amdSmiReadings(JSON.stringify(gpus), names)).toMatchObject([
    { power_draw_w: 45, temp_c: 44 },
    { power_draw_w: 30, temp_c: undefined },
  ]);
});

test("leaves out a GPU without a number, and not the others", () => {
  const gpus = [{ gpu: "N/A" }, "none", { power: { socket_power: 1 } }, { gpu: 1, power: { socket_power: 20 } }];
  expect(amdSmiReadings(JSON.stringify(gpus), names)).toMatchObject([{ index: 1, power_draw_w: 20 }]);
  expect(amdSmiNames(JSON.stringify([{ asic: {} }, { gpu: 1, asic: { market_name: "MI300X" } }]))).toEqual(
    new Map([[1, "MI300X"]]),
  );
});

test("a section that the chip lacks is a missing value, not an error", () => {
  expect(amdSmiReadings(JSON.stringify([{ gpu: 2, usage: "N/A", mem_usage: null }]), names)).toEqual([
    {
      index: 2,
      name: "AMD GPU",
      power_draw_w: undefined,
      temp_c: undefined,
      memory_used_mb: undefined,
      memory_total_mb: undefined,
      utilization_pct: undefined,
    },
  ]);
});

test.each(["{}", "[]", "3", '[{"gpu":"zero"}]', '{"gpu_data":"none"}'])(
  "JSON of another shape contains no GPU: %s",
  (text) => {
    expect(amdSmiReadings(text, names)).toEqual([]);
  },
);

test("rejects text that is not JSON", () => {
  expect(() => amdSmiReadings("AMD-SMI: not supported", names)).toThrow(SyntaxError);
});
