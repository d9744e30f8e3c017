// Browsers name others in their User-Agent, so the order decides: Edge says Chrome, and Chrome says Safari.
const browsers = [
  ["Edge", /\bEdg(?:e|A|iOS)?\/(\d+)/],
  ["Opera", /\bOPR\/(\d+)/],
  ["Samsung Internet", /\bSamsungBrowser\/(\d+)/],
  ["Firefox", /\b(?:Firefox|FxiOS)\/(\d+)/],
  ["Chrome", /\b(?:Headless)?Chrome\/(\d+)|\bCriOS\/(\d+)/],
  ["Safari", /\bVersion\/(\d+).*\bSafari\//],
] as const;

const systems = [
  ["Android", /\bAndroid\b/],
  ["iOS", /\b(?:iPhone|iPad|iPod)\b/],
  ["Windows", /\bWindows\b/],
  ["macOS", /\bMac OS X\b|\bMacintosh\b/],
  ["ChromeOS", /\bCrOS\b/],
  ["Linux", /\bLinux\b/],
] as const;

/** `Firefox 148 on Windows`; the first word of the User-Agent if it is not a known browser: `curl/8.14`. */
export function clientName(userAgent: string): string {
  for (const [browser, pattern] of browsers) {
    const found = pattern.exec(userAgent);
    if (found === null) continue;
    const system = systems.find(([, isSystem]) => isSystem.test(userAgent))?.[0];
    const name = `${browser} ${found[1] ?? found[2]}`;
    return system === undefined ? name : `${name} on ${system}`;
  }
  return userAgent.startsWith("Mozilla/") ? userAgent : (userAgent.split(" ", 1)[0] ?? userAgent);
}
