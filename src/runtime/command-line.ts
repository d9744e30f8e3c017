/** What starts this program again with other arguments, from its sources or as the one compiled file. */
export function ownCommandLine(args: readonly string[]): string[] {
  // A compiled program names itself in argv[1] by a path inside the binary, which is no argument.
  const sources = Bun.isStandaloneExecutable ? [] : process.argv.slice(1, 2);
  return [process.execPath, ...process.execArgv, ...sources, ...args];
}
