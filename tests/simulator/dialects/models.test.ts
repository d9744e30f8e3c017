import { expect, test } from "bun:test";
import OpenAI, { NotFoundError } from "openai";
import { startSimulator } from "../../support/simulator/simulator.ts";
import { rejectionOf } from "../../support/rejection.ts";

test("models are listed and found by their exact names", async () => {
  using simulator = startSimulator({ models: ["org/Model-7B", "second"], maxModelLen: 4096 });
  const openai = new OpenAI({ baseURL: `${simulator.url}/v1`, apiKey: "none", maxRetries: 0 });
  const { data } = await openai.models.list();
  expect(data.map(({ id }) => id)).toEqual(["org/Model-7B", "second"]);
  expect(await openai.models.retrieve("org/Model-7B")).toMatchObject({ id: "org/Model-7B", max_model_len: 4096 });
  expect(await rejectionOf(openai.models.retrieve("Second"))).toBeInstanceOf(NotFoundError);
});

test("a simulator that serves every name lists one", async () => {
  using simulator = startSimulator();
  const response = await fetch(`${simulator.url}/v1/models`);
  expect(await response.json()).toMatchObject({ object: "list", data: [{ object: "model" }] });
});
