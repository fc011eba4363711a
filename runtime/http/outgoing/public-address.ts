/**
 * Which IP addresses are of the public internet. A URL that a client chose must not make the kit talk
 * to itself, to its neighbours or to a cloud's metadata service (SSRF).
 */
import { BlockList, isIP, isIPv4, isIPv6 } from "node:net";

/** IPv4 that is not public: the IANA special-purpose registry (RFC 6890), multicast and above. */
const NOT_PUBLIC_V4: readonly (readonly [string, number])[] = [
  ["0.0.0.0", 8], // "this network"; 0.0.0.0 reaches the machine itself on Linux
  ["10.0.0.0", 8],
  ["100.64.0.0", 10], // shared address space of carriers
  ["127.0.0.0", 8],
  ["169.254.0.0", 16], // link-local, and the metadata services of clouds
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.31.196.0", 24],
  ["192.52.193.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["192.175.48.0", 24],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
];

/**
 * Inside global unicast (2000::/3): protocol assignments with Teredo, documentation, and 6to4,
 * which carries an IPv4 address of the sender's choice.
 */
const NOT_PUBLIC_V6: readonly (readonly [string, number])[] = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
];

const blocked = new BlockList();
for (const [net, prefix] of NOT_PUBLIC_V4) blocked.addSubnet(net, prefix, "ipv4");
for (const [net, prefix] of NOT_PUBLIC_V6) blocked.addSubnet(net, prefix, "ipv6");

/** Everything else in IPv6 is loopback, mapped or translated IPv4, unique local, link-local, multicast. */
const globalUnicast = new BlockList();
globalUnicast.addSubnet("2000::", 3, "ipv6");

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

/** True for an address of the public internet; false also for what is no IP address. */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !blocked.check(address, "ipv4");
  if (!isIPv6(address)) return false;
  return globalUnicast.check(address, "ipv6") && !blocked.check(address, "ipv6");
}

/** True for 127.0.0.0/8 and ::1, and nothing that merely stands for them. */
export function isLoopbackAddress(address: string): boolean {
  const isMapped = address.includes(":") && address.includes(".");
  if (isIP(address) === 0 || isMapped || /^::ffff:/i.test(address)) return false;
  return loopback.check(address, isIPv4(address) ? "ipv4" : "ipv6");
}
