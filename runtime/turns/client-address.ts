/** Who a client is for limits: its address as far as it cannot choose it. */

/** An address as clients are told apart: IPv6 by its network, of which one client has all. */
export function clientOf(remoteAddress: string | undefined): string {
  const address = (remoteAddress ?? "").replace(/^::ffff:(?=[0-9.]+$)/, "");
  if (!address.includes(":") || address === "::1") return address;
  const [head = "", tail] = address.split("::", 2);
  const first = head.split(":").filter((part) => part !== "");
  const last = tail === undefined ? [] : tail.split(":").filter((part) => part !== "");
  const missing = Math.max(0, 8 - first.length - last.length);
  return [...first, ...Array<string>(missing).fill("0"), ...last].slice(0, 4).join(":");
}

/** Whether a client, as `clientOf` names it, is this machine. */
export function isLoopback(client: string): boolean {
  return client.startsWith("127.") || client === "::1";
}
