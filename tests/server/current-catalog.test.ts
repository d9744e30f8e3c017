import { describe, expect, test } from "bun:test";
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { readConfig } from "../../src/config/config.ts";
import { ModelsFileError, readCatalog } from "../../src/server/current-catalog.ts";
import { startSimulator } from "../support/simulator/simulator.ts";
import { findFreePort } from "../support/free-port.ts";
import { runProgram } from "../support/program.ts";
import { createTempFolder, type TempFolder } from "../support/temp-folder.ts";
import { type LogEntry, startTollgate, type Tollgate } from "../support/tollgate.ts";

const file = (...models: string[]): string =>
  `backends: { a: { url: "http://127.0.0.1:9" } }\nmodels:\n${models.map((name) => `  ${name}: { backends: [a] }\n`).join("")}`;

const hashOf = (text: string): string => new Bun.CryptoHasher("sha256").update(text).digest("hex");

describe("the file of MODELS_FILE", () => {
  const faultsOf = (path: string): readonly string[] => {
    try {
      readCatalog(readConfig({ MODELS_FILE: path }, false), {});
      return [];
    } catch (error) {
      if (!(error instanceof ModelsFileError)) throw error;
      return error.faults;
    }
  };

  test("has to be a file that can be read", () => {
    using folder = createTempFolder();
    const missing = folder.file("missing.yaml");
    Bun.spawnSync(["mkfifo", folder.file("fifo")]);
    expect([missing, folder.path, folder.file("fifo"), "/dev/zero"].flatMap(faultsOf)).toEqual([
      `MODELS_FILE: "${missing}" cannot be read (ENOENT)`,
      `MODELS_FILE: "${folder.path}" is not a file`,
      `MODELS_FILE: "${folder.file("fifo")}" is not a file`,
      'MODELS_FILE: "/dev/zero" is not a file',
    ]);
  });

  test("that is too large is not read to its end", () => {
    using folder = createTempFolder();
    writeFileSync(folder.file("models.yaml"), "x".repeat(10_000_000));
    expect(faultsOf(folder.file("models.yaml"))).toEqual([`${folder.file("models.yaml")}: has more than 262144 bytes`]);
  });

  test("has the settings as its defaults", () => {
    using folder = createTempFolder();
    writeFileSync(folder.file("models.yaml"), file("m"));
    const settings = {
      MODELS_FILE: folder.file("models.yaml"),
      PROXY_HAN_GUARD: "off",
      PROXY_FORCE_STREAM_USAGE: "continuous",
      MAX_CONTEXT_TOKENS: "1000",
      MAX_OUTPUT_TOKENS: "100",
      PROXY_MAX_CONCURRENCY: "3",
    };
    const { models, otherModels, backends } = readCatalog(readConfig(settings, false), {});
    const rules = {
      reasoning: false,
      hanGuard: false,
      forceStreamUsage: "continuous",
      contextTokens: 1000,
      maxOutputTokens: 100,
    };
    expect(models[0]).toMatchObject(rules);
    expect(otherModels).toMatchObject(rules);
    expect(backends[0]?.maxConcurrency).toBe(3);
  });
});

describe("a program with a wrong MODELS_FILE", () => {
  test.each(["serve", "check"])(
    "ends `%s` with status 2, a line for each fault, and nothing started",
    async (command) => {
      using folder = createTempFolder();
      const path = folder.file("models.yaml");
      writeFileSync(path, "backends:\n  a: { url: nowhere }\nmodel: {}\n");
      const environment = { MODELS_FILE: path, PORT: "0", DATA_DIR: folder.file("data") };
      const { status, stdout, stderr } = await runProgram([command], environment);
      expect({ status, stderr: stderr.split("\n") }).toEqual({
        status: 2,
        stderr: [
          `tollgate: ${path}:2: backends.a.url: its value is not allowed; use an http:// or https:// address without user, query or fragment, or unix:/ and the path of a socket`,
          `tollgate: ${path}:3: model is unknown; use backends, models, default_model, list_aliases`,
          "",
        ],
      });
      expect(stdout).not.toContain("Listening");
    },
  );

  test.each([
    ["2", "models.yaml", "ENOENT"],
    ["1", "file/models.yaml", "ENOTDIR"],
    ["2", "file/models.yaml", "ENOTDIR"],
  ])("and PROCESSES=%s ends with status 2 if %s cannot be read (%s)", async (PROCESSES, name, code) => {
    using folder = createTempFolder();
    writeFileSync(folder.file("file"), "");
    const environment = { MODELS_FILE: folder.file(name), PORT: "0", PROCESSES };
    const { status, stderr } = await runProgram(["serve"], environment);
    expect({ status, stderr }).toEqual({
      status: 2,
      stderr: `tollgate: MODELS_FILE: "${folder.file(name)}" cannot be read (${code})\n`,
    });
  });
});

const inUse = "Models file in use";
const changed = "Models file changed and in use";
const refused = "Models file changed, and the earlier one stays in use";

describe("a server with MODELS_FILE", () => {
  async function start(folder: TempFolder, text: string): Promise<Tollgate & { path: string }> {
    const path = folder.file("models.yaml");
    writeFileSync(path, text);
    const tollgate = await startTollgate({ MODELS_FILE: path });
    return Object.assign(tollgate, { path });
  }
  const entry = (msg: string, hash?: string) => (found: LogEntry) =>
    found["message"] === msg && (hash === undefined || found["hash"] === hash);

  test("logs its hash, and takes a changed file over", async () => {
    using folder = createTempFolder();
    await using tollgate = await start(folder, file("one", "two", "three"));
    expect(await tollgate.waitForLog(entry(inUse))).toMatchObject({
      file: tollgate.path,
      hash: hashOf(file("one", "two", "three")),
      backends: 1,
      models: 3,
    });
    writeFileSync(tollgate.path, file("four", "two"));
    expect(await tollgate.waitForLog(entry(changed))).toMatchObject({ hash: hashOf(file("four", "two")), models: 2 });
    await tollgate.waitForLog(
      (found) => found["message"] === "Model left the models file" && found["model"] === "three",
    );
    const gone = tollgate.log.filter(({ message }) => message === "Model left the models file");
    expect(gone.map(({ model }) => model)).toEqual(["one", "three"]);
  });

  test("takes over what replaces the file, or the folder that it stands in", async () => {
    using folder = createTempFolder();
    for (const version of ["1", "2"]) {
      mkdirSync(folder.file(version));
      writeFileSync(folder.file(`${version}/models.yaml`), file(`m${version}`));
    }
    symlinkSync("1", folder.file("current"));
    await using tollgate = await startTollgate({ MODELS_FILE: folder.file("current/models.yaml") });
    symlinkSync("2", folder.file("next"));
    renameSync(folder.file("next"), folder.file("current"));
    await tollgate.waitForLog(entry(changed, hashOf(file("m2"))));
    writeFileSync(folder.file("2/new.yaml"), file("m3"));
    renameSync(folder.file("2/new.yaml"), folder.file("2/models.yaml"));
    await tollgate.waitForLog(entry(changed, hashOf(file("m3"))));
  });

  test("refuses a wrong change line by line, keeps what it has, and takes the next good one over", async () => {
    using folder = createTempFolder();
    await using tollgate = await start(folder, file("one"));
    writeFileSync(tollgate.path, `${file("one")}models: {}\nlist_aliases: 3\n`);
    await tollgate.waitForLog(entry(refused));
    writeFileSync(tollgate.path, "backends: { a: { url: x, b: 1 } }\n");
    await tollgate.waitForLog((found) =>
      String(found["fault"]).endsWith("discover, cached_in_input, priority, engine_members, health"),
    );
    rmSync(tollgate.path);
    await tollgate.waitForLog((found) => String(found["fault"]).endsWith("cannot be read (ENOENT)"));
    const faults = tollgate.log.filter(entry(refused)).map(({ fault }) => String(fault).replace(tollgate.path, "FILE"));
    expect(faults).toEqual([
      "FILE:4: models: stands here twice, first on line 2",
      expect.stringMatching(/^FILE:1: backends\.a: b is unknown/),
      expect.stringMatching(/^FILE:1: backends\.a\.url: its value/),
      expect.stringMatching(/^MODELS_FILE: "FILE" cannot/),
    ]);
    writeFileSync(tollgate.path, file("one"));
    await tollgate.waitForLog(entry("Models file is the one in use", hashOf(file("one"))));
    expect(tollgate.log.filter(entry(changed))).toEqual([]);
    writeFileSync(tollgate.path, file("two"));
    await tollgate.waitForLog(entry(changed, hashOf(file("two"))));
  });
});

describe("requests around a change of MODELS_FILE", () => {
  test("go where the file says that held when they began", async () => {
    using before = startSimulator();
    using after = startSimulator();
    using folder = createTempFolder();
    const path = folder.file("models.yaml");
    const write = (backend: string, model: string): string => {
      const text = `backends: { b: { url: "${backend}" } }\nmodels: { ${model}: { backends: [b] } }\n`;
      writeFileSync(path, text);
      return hashOf(text);
    };
    write(before.url, "old");
    await using tollgate = await startTollgate({ MODELS_FILE: path });
    const ask = async (model: string): Promise<number> => {
      const headers = { authorization: `Bearer ${tollgate.key}`, "content-type": "application/json" };
      const body = JSON.stringify({ model, messages: [{ role: "user", content: "hi" }] });
      const response = await fetch(`${tollgate.url}/v1/chat/completions`, { method: "POST", headers, body });
      await response.text();
      return response.status;
    };
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<void>();
    before.handle(async (_request, wire) => {
      asked.resolve();
      await answer.promise;
      wire.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-type: application/json\r\n\r\n{}");
      wire.end();
    });
    const running = ask("old");
    await asked.promise;
    const hash = write(after.url, "new");
    await tollgate.waitForLog((found) => found["message"] === changed && found["hash"] === hash);
    const statuses = [await ask("new")];
    writeFileSync(path, "backends: {}\n");
    await tollgate.waitForLog((found) => found["message"] === refused);
    statuses.push(await ask("new"));
    answer.resolve();
    expect([...statuses, await running]).toEqual([200, 200, 200]);
    expect(
      [before, after].map((backend) => backend.requests().filter(({ method }) => method === "POST").length),
    ).toEqual([1, 2]);
  });

  test.each([
    ["go to its new address if they waited for a backend that was away", "m", 30, true],
    ["keep the address that they began with if the backend's name of their model changes too", "other", 5, false],
  ])("%s", async (_what, servedAs, waitS, arrive) => {
    using moved = startSimulator();
    using folder = createTempFolder();
    const path = folder.file("models.yaml");
    const write = (url: string, name: string): void =>
      writeFileSync(path, `backends: { b: { url: "${url}" } }\nmodels: { m: { backends: [b], served_as: ${name} } }\n`);
    write(`http://127.0.0.1:${findFreePort()}`, "m");
    await using tollgate = await startTollgate({ MODELS_FILE: path, PROXY_BACKEND_WAIT: String(waitS) });
    const ask = async (): Promise<boolean> => {
      const headers = { authorization: `Bearer ${tollgate.key}`, "content-type": "application/json" };
      const response = await fetch(`${tollgate.url}/v1/chat/completions`, { method: "POST", headers, body });
      await response.text();
      return response.ok;
    };
    const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }] });
    // The first one finds out that the backend is away; the second one waits from the start.
    const first = ask();
    await tollgate.waitForLog(({ message }) => message === "Backend out");
    const second = ask();
    write(moved.url, servedAs);
    expect(await Promise.all([first, second])).toEqual([arrive, arrive]);
    expect(moved.requests().filter(({ method }) => method === "POST")).toHaveLength(arrive ? 2 : 0);
  });
});
