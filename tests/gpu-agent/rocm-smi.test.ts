import { expect, test } from "bun:test";
import { rocmSmiReadings } from "../../src/gpu-agent/rocm-smi.ts";

const radeon = {
  "Temperature (Sensor edge) (C)": "49.0",
  "Temperature (Sensor junction) (C)": "52.0",
  "Average Graphics Package Power (W)": "19.0",
  "GPU use (%)": "7",
  "VRAM Total Memory (B)": "25753026560",
  "VRAM Total Used Memory (B)": "794341376",
  "Card Series": "Radeon RX 7900 XTX",
};

test("reads a discrete card, with its memory in MiB", () => {
  expect(rocmSmiReadings(JSON.stringify({ card0: radeon, system: { "Driver version": "6.8" } }))).toEqual([
    {
      index: 0,
      name: "Radeon RX 7900 XTX",
      power_draw_w: 19,
      temp_c: 49,
      memory_used_mb: 794341376 / 1048576,
      memory_total_mb: 24560,
      utilization_pct: 7,
    },
  ]);
});

test("reads the labels of other cards and releases", () => {
  const card = {
    "Device Name": "Phoenix3",
    "Card series": "N/A",
    "Current Socket Graphics Package Power (W)": "7.222",
    "Temperature (Sensor junction) (c)": "103.0",
    "GPU use (%)": "N/A",
  };
  expect(rocmSmiReadings(JSON.stringify({ card1: card }))[0]).toMatchObject({
    index: 1,
    name: "Phoenix3",
    power_draw_w: 7.222,
    temp_c: 103,
    utilization_pct: undefined,
  });
});

test("leaves out a card that cannot be read, and not the others; reads numbers with units", () => {
  const card = { "Socket Graphics Package Power (W)": "45.5 W", "Max Graphics Package Power (W)": "300" };
  expect(rocmSmiReadings(JSON.stringify({ card0: "N/A", system: 3, card1: card }))).toMatchObject([
    { index: 1, power_draw_w: 45.5 },
  ]);
});

test("sorts cards by number", () => {
  const text = JSON.stringify({ card10: radeon, card2: radeon });
  expect(rocmSmiReadings(text).map(({ index }) => index)).toEqual([2, 10]);
});

test("JSON of another shape contains no card", () => {
  expect(rocmSmiReadings("[]")).toEqual([]);
  expect(rocmSmiReadings('{"card0":"none"}')).toEqual([]);
});
