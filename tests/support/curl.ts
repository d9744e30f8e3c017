/** Why tests that run curl are skipped here, if they are. */
export const whyNoCurl = Bun.which("curl") === null ? "curl is not installed: its tests are skipped" : undefined;

if (whyNoCurl !== undefined) process.stderr.write(`${whyNoCurl}\n`);
