import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "../support/import-table.ts";
import { startSimulator } from "../support/simulator/simulator.ts";
import { startTollgate } from "../support/tollgate.ts";

/** `tests/clients/setup` installs it. */
const python = join(repositoryRoot, "node_modules/.cache/real-clients/sdks/bin/python");

/** A nightly batch as one writes it, with the SDK's own retries. */
const batch = `
import asyncio, sys
from openai import AsyncOpenAI
async def main():
    slow = {"x-simulate": "slow-head=400ms"}
    client = AsyncOpenAI(base_url=sys.argv[1] + "/v1", api_key=sys.argv[2], timeout=4000, default_headers=slow)
    ask = lambda: client.chat.completions.create(model="m", max_tokens=2, messages=[{"role": "user", "content": "Hi"}])
    answers = await asyncio.gather(*(ask() for _ in range(200)))
    print(sum(answer.choices[0].message.content != "" for answer in answers))
asyncio.run(main())
`;

test.skipIf(!existsSync(python))(
  "200 low requests of openai (python) over 8 slots get 200 answers without a retry, far beyond the patience of others",
  async () => {
    using backend = startSimulator();
    await using gate = await startTollgate({
      PROXY_UPSTREAM_URL: backend.url,
      PROXY_MAX_CONCURRENCY: "8",
      PROXY_QUEUE_TIMEOUT: "2",
    });
    const { key } = await gate.admin.createKey("batch", { priority: "low" });
    await using program = Bun.spawn([python, "-c", batch, gate.url, key], { stdout: "pipe", stderr: "inherit" });
    expect((await new Response(program.stdout).text()).trim()).toBe("200");
    expect(await program.exited).toBe(0);
    expect(backend.requests().filter(({ path }) => path === "/v1/chat/completions")).toHaveLength(200);
    // Each was sent to the gate once, too.
    expect(await gate.admin.listRequests("?failed=true")).toEqual([]);
  },
);
