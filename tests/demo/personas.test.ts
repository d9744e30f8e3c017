import { expect, test } from "bun:test";
import { bodyOf, demoModel, leavesAfter, personas } from "../../src/demo/personas.ts";
import { startSimulator } from "../support/simulator/simulator.ts";

test("the simulated model accepts every turn of every persona", async () => {
  using backend = startSimulator({
    models: [...personas.map(({ model }) => model), `${demoModel}-nonthinking`, "claude-code"],
  });
  for (const persona of personas) {
    for (let turn = 0; turn < 20; turn++) {
      const body = JSON.stringify(bodyOf(persona, turn, 40));
      const response = await fetch(backend.url + persona.path, { method: "POST", body });
      expect([persona.keyName, response.status]).toEqual([persona.keyName, 200]);
      await response.arrayBuffer();
    }
  }
});

test("some coding turns ask for maximum effort, and some clients leave early", () => {
  const turns = Array.from({ length: 20 }, (_, turn) => turn);
  const coding = personas.find(({ path }) => path === "/v1/messages");
  const efforts = turns.filter((turn) => coding && "output_config" in bodyOf(coding, turn, 1));
  expect(efforts.length).toBeWithin(1, 20);
  const leaving = personas.filter((persona) => leavesAfter(persona, () => 0) < Infinity);
  expect(leaving.map(({ keyName }) => keyName)).toEqual(["Phone app, beta"]);
  expect(leavesAfter({ ...leaving[0], isImpatient: true } as (typeof personas)[number], () => 0.5)).toBe(Infinity);
});
