const maxTailLength = 12;

/** Without the vendor, which the GPUs of a host usually share. */
const shortName = (name: string): string => name.replace(/^(?:NVIDIA|AMD) +(?=\S)/i, "");

/**
 * A name in two parts, of which only the head may be cut: models of one family differ at their end, such as
 * `NVIDIA H100 80GB HBM3` and `NVIDIA H100 80GB PCIe`. The tail begins with a word if it can.
 */
export function splitName(name: string): { head: string; tail: string } {
  const letters = Array.from(shortName(name));
  const from = Math.max(0, letters.length - maxTailLength);
  const space = from === 0 ? -1 : letters.indexOf(" ", from);
  const at = space === -1 ? from : space;
  return { head: letters.slice(0, at).join(""), tail: letters.slice(at).join("") };
}
