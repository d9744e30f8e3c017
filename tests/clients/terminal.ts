/** A program on a screen of its own, of 200 columns, and of so many lines that nothing leaves it. */
export interface Terminal extends Disposable {
  /** Types a line and sends it. */
  type: (line: string) => Promise<void>;
  /** What stands there, without empty lines, once it has that text and has not changed for so long. */
  settle: (quietMs: number, text?: string) => Promise<string>;
}

interface Place {
  cwd: string;
  env: Readonly<Record<string, string>>;
  /** Path of a socket that it makes. */
  socket: string;
}

/** Of the longest answer. */
const deadlineMs = 300_000;
const pollMs = 200;

/** With tmux. */
export function openTerminal(command: readonly string[], { cwd, env, socket }: Place): Terminal {
  const tmux = (...args: string[]): string => {
    const { stdout, stderr, exitCode } = Bun.spawnSync(["tmux", "-S", socket, ...args], { cwd, env });
    if (exitCode !== 0) throw new Error(`tmux: ${stderr.toString()}`);
    return stdout.toString();
  };
  tmux("-f", "/dev/null", "new-session", "-d", "-x", "200", "-y", "600", ...command);
  const screen = (): string =>
    tmux("capture-pane", "-p")
      .split("\n")
      .map((line) => line.trimEnd())
      .filter((line) => line !== "")
      .join("\n");
  const settle = async (quietMs: number, text = ""): Promise<string> => {
    const deadline = performance.now() + deadlineMs;
    let before = "";
    for (let since = performance.now(); !before.includes(text) || performance.now() - since < quietMs;) {
      if (performance.now() > deadline) throw new Error(`The screen does not settle:\n${before}`);
      await Bun.sleep(pollMs);
      const now = screen();
      if (now !== before) since = performance.now();
      before = now;
    }
    return before;
  };
  return {
    async type(line) {
      tmux("send-keys", "-l", line);
      // Keys that come at once are a paste, in which Enter is a line break.
      await settle(1000);
      tmux("send-keys", "Enter");
    },
    settle,
    [Symbol.dispose]: () => void tmux("kill-server"),
  };
}
