import { modelsFileSchema } from "../config/models-schema.ts";
import { printModelsFile } from "../config/print-models-file.ts";
import { CommandError, type CommandIo, readArguments } from "./command.ts";
import { envFileHelp, envFileOption, withServiceSettings } from "./env-file.ts";
import { settingsOf } from "./settings.ts";

export const summary = "print the settings' backend and model as a file for MODELS_FILE";

export const chapter = "Models and backends";

export const help = `tollgate models [--schema] [--env-file FILE]

Prints a file of backends and models that means what the settings of \`tollgate serve\` mean, to begin with.
It names the environment variable for the backend's key, and does not contain it.

  --schema           print the JSON Schema of such files instead, for editors
${envFileHelp} on standard error

\`tollgate check\` checks a file that MODELS_FILE names.
`;

export async function run(args: string[], io: CommandIo): Promise<number> {
  const options = { schema: { type: "boolean", default: false }, ...envFileOption } as const;
  const { schema, "env-file": envFile } = readArguments("models", args, options).values;
  if (schema) {
    io.stdout.write(`${JSON.stringify(modelsFileSchema, null, 2)}\n`);
    return 0;
  }
  // What is printed is the file alone.
  const config = settingsOf(withServiceSettings({ ...io, stdout: io.stderr }, envFile));
  if (config.modelsFile !== undefined) {
    throw new CommandError(`MODELS_FILE: the settings name a file already, ${JSON.stringify(config.modelsFile)}`, 2);
  }
  io.stdout.write(printModelsFile(config));
  return 0;
}
