import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { readConfig, variableNames } from "../src/config/config.ts";

interface Service {
  env_file?: { path: string; required: boolean }[];
  build?: { context: string; dockerfile: string };
  environment?: Record<string, string>;
  profiles?: string[];
  volumes?: string[];
  configs?: { source: string; target: string }[];
}

const folder = join(import.meta.dir, "../.ci");
const file = Bun.YAML.parse(await Bun.file(join(folder, "compose.yaml")).text()) as {
  services: Record<string, Service>;
  volumes: Record<string, null>;
  configs: Record<string, { content: string }>;
};

test("the compose file starts Tollgate, and the others only with their profiles", () => {
  const profiles = Object.entries(file.services).map(([name, { profiles: own }]) => [name, own]);
  expect(Object.fromEntries(profiles)).toEqual({
    tollgate: undefined,
    postgres: ["postgres"],
    prometheus: ["watching"],
    grafana: ["watching"],
  });
});

test("the compose file builds from a Dockerfile that exists, and declares each volume that it mounts", () => {
  const { build } = file.services["tollgate"] ?? {};
  expect(existsSync(join(folder, build?.context ?? "", build?.dockerfile ?? ""))).toBeTrue();
  const mounted = Object.values(file.services).flatMap(({ volumes = [] }) => volumes.map((one) => one.split(":")[0]));
  expect(new Set(mounted)).toEqual(new Set(Object.keys(file.volumes)));
});

test("the compose file and the Dockerfile have settings that the program knows and accepts", async () => {
  const { environment = {} } = file.services["tollgate"] ?? {};
  expect(Object.keys(environment).filter((name) => !variableNames.includes(name))).toEqual([]);
  // All others.
  expect(file.services["tollgate"]?.env_file).toEqual([{ path: ".env", required: false }]);
  // What compose makes of ${NAME:-default} and ${NAME-default} while NAME is unset.
  const unset = Object.entries(environment).map(([name, value]) => [name, /[A-Z]:?-(.*)\}$/.exec(value)?.[1] ?? value]);
  const dockerfile = await Bun.file(join(folder, "Dockerfile")).text();
  const [, line = ""] = /^ENV (.*)$/m.exec(dockerfile) ?? [];
  const image = Object.fromEntries(line.split(" ").map((pair) => pair.split("="))) as Record<string, string>;
  const config = readConfig({ ...image, ...(Object.fromEntries(unset) as Record<string, string>) }, false);
  expect([config.listen.host, config.storage.dataDir, config.storage.databaseUrl]).toEqual([
    "0.0.0.0",
    "/data",
    undefined,
  ]);
});

test("of the repository, only the binary is sent to build the image", async () => {
  const lines = (await Bun.file(join(folder, "../.dockerignore")).text()).trim().split("\n");
  expect(lines).toEqual(["*", "!dist/tollgate"]);
});

test("its Grafana reads from its Prometheus, and each config is declared and used", () => {
  const { datasources } = Bun.YAML.parse(file.configs["grafana"]?.content ?? "") as { datasources: { url: string }[] };
  expect(datasources.map(({ url }) => url)).toEqual(["http://prometheus:9090"]);
  const used = Object.values(file.services).flatMap(({ configs = [] }) => configs.map(({ source }) => source));
  expect(used.toSorted()).toEqual(Object.keys(file.configs).toSorted());
});

test("its Prometheus scrapes with the metrics token", () => {
  const prometheus = Bun.YAML.parse(file.configs["prometheus"]?.content ?? "") as {
    scrape_configs: { job_name: string; authorization: { credentials: string } }[];
  };
  expect(prometheus.scrape_configs[0]).toMatchObject({ authorization: { credentials: "${METRICS_TOKEN:-}" } });
});
