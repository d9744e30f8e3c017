import { expect } from "bun:test";
import { treaty } from "@elysiajs/eden";
import { Elysia, t } from "elysia";
import { repositoryRoot } from "../support/import-table.ts";
import { stillNeeded } from "./still-needed.ts";

const origin = "http://localhost";

stillNeeded("Elysia still routes by a short Host", "src/server/app.ts", async () => {
  const app = new Elysia().get("/path", "found").all("/*", "not found");
  expect(await (await app.handle(new Request(`${origin}/path`))).text()).toBe("found");
  expect(await (await app.handle(new Request("http://gw/path"))).text()).toBe("not found");
});

stillNeeded("Elysia still takes the host for a part of the path over HTTPS", "src/runtime/listen.ts", async () => {
  const app = new Elysia({ handler: { standardHostname: false } }).get("/path", "found").all("/*", "not found");
  expect(await (await app.handle(new Request(`${origin}/path`))).text()).toBe("found");
  expect(await (await app.handle(new Request("https://localhost/path"))).text()).toBe("not found");
});

stillNeeded("Elysia still adds a second hook to earlier routes", "src/admin/routes.ts", async () => {
  const paths: string[] = [];
  const app = new Elysia()
    .onTransform(() => {})
    .get("/earlier", "")
    .onTransform(({ path }) => void paths.push(path))
    .get("/later", "");
  for (const path of ["/earlier", "/later"]) await app.handle(new Request(origin + path));
  expect(paths).toEqual(["/earlier", "/later"]);
});

stillNeeded("Elysia still takes 0x7 for an integer", "src/admin/routes.ts", async () => {
  const app = new Elysia().get("/", ({ query }) => query.n, { query: t.Object({ n: t.Integer() }) });
  for (const text of ["0x7", "7.0", "0.7e1"]) {
    expect(await (await app.handle(new Request(`${origin}/?n=${text}`))).text()).toBe("7");
  }
});

stillNeeded("Elysia still reads a whole body to respond to HEAD", "src/admin/http/json-stream.ts", async () => {
  let chunks = 0;
  const body = () =>
    new ReadableStream<Uint8Array>({
      pull(controller) {
        if (++chunks < 100) controller.enqueue(new Uint8Array(1));
        else controller.close();
      },
    });
  const app = new Elysia().get("/", () => new Response(body()));
  await app.handle(new Request(origin, { method: "HEAD" }));
  expect(chunks).toBe(100);
});

stillNeeded("The OpenAPI package still replaces the check of a format", "src/admin/http/openapi.ts", () => {
  const source = `import { FormatRegistry } from "@sinclair/typebox";
    const check = () => true;
    FormatRegistry.Set("date", check);
    await import("@elysiajs/openapi");
    console.log(FormatRegistry.Get("date") === check);`;
  const { stdout } = Bun.spawnSync([process.execPath, "-e", source], { cwd: repositoryRoot });
  expect(stdout.toString().trim()).toBe("false");
});

stillNeeded("Eden still reports a failed connection as status 503", "console/src/client.ts", async () => {
  const app = new Elysia().get("/path", "");
  const { error, response } = await treaty<typeof app>("http://127.0.0.1:1").path.get();
  expect(error).toMatchObject({ status: 503 });
  expect(response).toBeUndefined();
});
