/** Which IP addresses are likely to be in one hand: keys are free, addresses of many networks not. */
import { BlockList, isIP } from "node:net";

const privateAddresses = new BlockList();
for (const [network, bits] of [
  ["10.0.0.0", 8],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.168.0.0", 16],
  ["0.0.0.0", 8],
] as const) {
  privateAddresses.addSubnet(network, bits, "ipv4");
}
privateAddresses.addAddress("::1", "ipv6");
privateAddresses.addSubnet("fc00::", 7, "ipv6");
privateAddresses.addSubnet("fe80::", 10, "ipv6");

/** Whether an IP address means something only within one network; false for names. */
export function isPrivateIp(ip: string): boolean {
  const version = isIP(ip);
  return version !== 0 && privateAddresses.check(ip, version === 6 ? "ipv6" : "ipv4");
}

/**
 * What one customer of a provider has: an IPv4 address, or an IPv6 network of 64 bits. The text is
 * only good for comparing.
 */
export function siteOf(ip: string): string {
  return isIP(ip) === 6 ? prefixOf(expanded(ip), 4) : ip;
}

/**
 * What one provider has, as Bitcoin's address manager groups them: the first 16 bits of an IPv4
 * address, 32 of an IPv6 one. Private addresses and names are groups of their own.
 */
export function groupOf(host: string): string {
  const version = isIP(host);
  if (version === 0 || isPrivateIp(host)) return host;
  return version === 6 ? prefixOf(expanded(host), 2) : prefixOf(host.split("."), 2);
}

function prefixOf(parts: readonly string[], count: number): string {
  return parts.slice(0, count).join(".");
}

/** The eight parts of an IPv6 address; one of IPv4 in its clothes has its last two in one. */
function expanded(ip: string): string[] {
  const [head = "", tail] = ip.toLowerCase().split("%", 1).join("").split("::", 2);
  const front = head === "" ? [] : head.split(":");
  const back = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? 0 : 8 - front.length - back.length;
  const parts = [...front, ...Array.from({ length: Math.max(0, zeros) }, () => "0"), ...back];
  return parts.map((part) => part.replace(/^0+(?=.)/, ""));
}
