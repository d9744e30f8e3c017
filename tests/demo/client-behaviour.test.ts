import { describe, expect, test } from "bun:test";
import { personas } from "../../src/demo/personas.ts";
import { startSimulator } from "../support/simulator/simulator.ts";
import { demoEmbeddingModel, demoModel, demoSmallModel } from "../../src/demo/client-behaviour.ts";

const turns = (keyName: string) => {
  const persona = personas.find((one) => one.keyName === keyName);
  return Array.from({ length: 20 }, (_, turn) => persona?.nextTurn?.(turn, 40));
};

describe("client behaviour", () => {
  test("the simulated model accepts every turn of every persona", async () => {
    using backend = startSimulator({
      models: [demoModel, demoSmallModel, demoEmbeddingModel, `${demoModel}-nonthinking`, "claude-code"],
    });
    for (const { keyName } of personas) {
      for (const turn of turns(keyName)) {
        if (turn === undefined) continue;
        const response = await fetch(backend.url + turn.path, { method: "POST", body: JSON.stringify(turn.body) });
        expect([keyName, response.status]).toEqual([keyName, 200]);
        await response.arrayBuffer();
      }
    }
  });

  test("some chats use the non-thinking model, some coding turns maximum effort, and some clients leave early", () => {
    expect(
      turns("Chat for the office").some((turn) => String(turn?.body["model"]).endsWith("-nonthinking")),
    ).toBeTrue();
    expect(turns("Coding agents").filter((turn) => turn?.body["output_config"] !== undefined).length).toBeWithin(1, 20);
    expect(turns("Phone app, beta").filter((turn) => turn?.leavesAfterMs !== undefined).length).toBeWithin(1, 20);
  });
});
