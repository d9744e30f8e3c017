import { describe, expect, test } from "bun:test";
import { personas } from "../../src/demo/personas.ts";
import { startSimulator } from "../../src/simulator/simulator.ts";
import { demoModel } from "../../src/demo/client-behaviour.ts";

const turns = (keyName: string) => {
  const habit = personas.find((character) => character.keyName === keyName)?.habit;
  return Array.from({ length: 20 }, (_, turn) => habit?.turn(turn));
};

describe("habits", () => {
  test("every turn of every character is one that the simulated model answers", async () => {
    using backend = startSimulator({ models: [demoModel, `${demoModel}-nonthinking`, "claude-code"] });
    for (const { keyName } of personas) {
      for (const turn of turns(keyName)) {
        if (turn === undefined) continue;
        const answer = await fetch(backend.url + turn.path, { method: "POST", body: JSON.stringify(turn.body) });
        expect([keyName, answer.status]).toEqual([keyName, 200]);
        await answer.arrayBuffer();
      }
    }
  });

  test("some chats go without thinking, some code with maximum effort, and some people leave early", () => {
    expect(
      turns("Chat for the office").some((turn) => String(turn?.body["model"]).endsWith("-nonthinking")),
    ).toBeTrue();
    expect(turns("Coding agents").filter((turn) => turn?.body["output_config"] !== undefined).length).toBeWithin(1, 20);
    expect(turns("Phone app, beta").filter((turn) => turn?.leavesAfterMs !== undefined).length).toBeWithin(1, 20);
  });
});
