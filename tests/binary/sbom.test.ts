import { expect, test } from "bun:test";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };

interface Bom {
  bomFormat: string;
  serialNumber: string;
  metadata: { timestamp: string; component: { "bom-ref": string } };
  components: {
    name: string;
    version: string;
    purl: string;
    "bom-ref": string;
    hashes: { alg: string; content: string }[];
  }[];
  dependencies: { ref: string; dependsOn: string[] }[];
}

const { stdout, exitCode } = Bun.spawnSync([process.execPath, join(import.meta.dir, "../../.ci/sbom")]);
const bom = JSON.parse(stdout.toString()) as Bom;

test("the bill of materials names the runtime and every package of the server, with its version", () => {
  expect(exitCode).toBe(0);
  const versions = Object.fromEntries(bom.components.map(({ name, version }) => [name, version]));
  expect(versions).toMatchObject({ ...packageJson.dependencies, bun: packageJson.devDependencies.bun });
  expect(versions).toHaveProperty("solid-js");
  // A dependency of a dependency.
  expect(versions).toHaveProperty("exact-mirror");
  expect(versions).not.toHaveProperty("oxlint");
});

test("each of its references leads to a component, and each component is referred to", () => {
  const known = [bom.metadata.component["bom-ref"], ...bom.components.map((one) => one["bom-ref"])];
  expect(new Set(known).size).toBe(known.length);
  expect(bom.dependencies.map(({ ref }) => ref).toSorted()).toEqual(known.toSorted());
  const used = new Set(bom.dependencies.flatMap(({ dependsOn }) => dependsOn));
  expect([...used].filter((ref) => !known.includes(ref))).toEqual([]);
  expect(known.slice(1).filter((ref) => !used.has(ref))).toEqual([]);
});

test("it has a number and a time, and each component the hash of what was installed, the font's too", () => {
  expect(bom.serialNumber).toMatch(/^urn:uuid:[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/);
  expect(Math.abs(Date.now() - Date.parse(bom.metadata.timestamp))).toBeLessThan(600_000);
  const hash = { alg: "SHA-512", content: expect.stringMatching(/^[\da-f]{128}$/) };
  for (const { name, hashes } of bom.components) expect([name, hashes]).toEqual([name, [hash]]);
  expect(bom.components.map(({ name }) => name)).toContain("@fontsource-variable/figtree");
});
