import { expect, test } from "bun:test";
import { addressScope, clientAddressOf, findWideScope } from "../../src/domain/client-address.ts";

test.each([
  [0, null, "192.0.2.1", "192.0.2.1"],
  [0, "203.0.113.7", "192.0.2.1", "192.0.2.1"],
  [1, null, "192.0.2.1", "192.0.2.1"],
  [1, "203.0.113.7", "192.0.2.1", "203.0.113.7"],
  [1, "198.51.100.66, 203.0.113.7", "192.0.2.1", "203.0.113.7"],
  [2, "198.51.100.66, 203.0.113.7, 10.0.0.1", "192.0.2.1", "203.0.113.7"],
  [2, "203.0.113.7", "192.0.2.1", "203.0.113.7"],
  [1, "198.51.100.66,  203.0.113.7 ", "192.0.2.1", "203.0.113.7"],
  [1, "203.0.113.7:4711", "192.0.2.1", "203.0.113.7"],
  [1, "[2001:db8::1]:4711", "192.0.2.1", "2001:db8::1"],
  [1, "2001:DB8::1", "192.0.2.1", "2001:db8::1"],
  [1, "::ffff:203.0.113.7", "192.0.2.1", "203.0.113.7"],
  [0, null, "::ffff:127.0.0.1", "127.0.0.1"],
  [1, "unknown", "192.0.2.1", "192.0.2.1"],
  [1, "", "192.0.2.1", "192.0.2.1"],
  [1, "203.0.113.7,", "192.0.2.1", "192.0.2.1"],
  [1, "<script>", "192.0.2.1", "192.0.2.1"],
])(
  "with %d trusted hops, X-Forwarded-For %p from %s means %s",
  (trustedHops, forwardedFor, socketAddress, expected) => {
    const headers = new Headers(forwardedFor === null ? {} : { "x-forwarded-for": forwardedFor });
    expect(clientAddressOf(trustedHops)({ headers }, socketAddress)).toBe(expected);
  },
);

test.each([
  ["203.0.113.7", "203.0.113.7"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:db8:1:2::", "2001:db8:1:2::/64"],
  ["2001:0db8::1", "2001:db8:0:0::/64"],
  ["::1", "0:0:0:0::/64"],
  ["1::2", "1:0:0:0::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
  ["not an address", "not an address"],
])("login attempts from %s count for %s", (address, scope) => {
  expect(addressScope(address)).toBe(scope);
});

test.each([
  ["203.0.113.7", undefined],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1::/48"],
  ["2001:db8::1", "2001:db8:0::/48"],
  ["::1", "0:0:0::/48"],
])("login attempts from %s also count for the wide scope %p", (address, scope) => {
  expect(findWideScope(address)).toBe(scope);
});
