/** The command line that runs this program with other arguments, from source or as the compiled binary. */
export function ownCommandLine(args: readonly string[]): string[] {
  // In the binary argv[1] is a path inside it, not an argument.
  const sources = Bun.isStandaloneExecutable ? [] : process.argv.slice(1, 2);
  return [process.execPath, ...process.execArgv, ...sources, ...args];
}
