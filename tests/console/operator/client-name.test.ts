import { expect, test } from "bun:test";
import { clientName } from "../../../console/src/operator/client-name.ts";

const mac = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)";
const webkit = "AppleWebKit/537.36 (KHTML, like Gecko)";

test.each([
  ["Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:148.0) Gecko/20100101 Firefox/148.0", "Firefox 148 on Windows"],
  [`${mac} ${webkit} Chrome/142.0.0.0 Safari/537.36`, "Chrome 142 on macOS"],
  [`${mac} AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.1 Safari/605.1.15`, "Safari 26 on macOS"],
  [`Mozilla/5.0 (X11; Linux x86_64) ${webkit} HeadlessChrome/142.0.0.0 Safari/537.36`, "Chrome 142 on Linux"],
  [`Mozilla/5.0 (Windows NT 10.0) ${webkit} Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0`, "Edge 142 on Windows"],
  [
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/142.0 Mobile/15E148 Safari/604.1",
    "Chrome 142 on iOS",
  ],
  [`Mozilla/5.0 (Linux; Android 10; K) ${webkit} Chrome/142.0.0.0 Mobile Safari/537.36`, "Chrome 142 on Android"],
  ["Mozilla/5.0 (compatible; Unheard/1.0)", "Mozilla/5.0 (compatible; Unheard/1.0)"],
  ["curl/8.14.1", "curl/8.14.1"],
  ["python-requests/2.32 extra", "python-requests/2.32"],
])("%p is %p", (userAgent, name) => expect(clientName(userAgent)).toBe(name));
