/**
 * Addresses of names that strangers chose, asked of DNS servers over sockets. The system's library takes a
 * thread of this process for as long as a name's servers say nothing, and has two for all names: those of
 * other receivers would wait behind it, and so would the node's and the database's.
 */
import { Resolver } from "node:dns/promises";

/** Finds all addresses of a host name; nobody waits for them any more when the signal fires. */
export type ResolveHost = (host: string, signal: AbortSignal) => Promise<readonly string[]>;

/** First wait for a server's answer, and how often it is asked; each further wait is twice as long. */
const QUERY_TIMEOUT_MS = 2_000;
const QUERY_TRIES = 2;

/** This machine, whatever servers say of it (RFC 6761, 6.3). */
const LOCALHOST: readonly string[] = ["127.0.0.1", "::1"];

/**
 * Makes what finds the addresses of a name, IPv4 and IPv6 by turns; where neither is found it throws what was
 * said of IPv4.
 * @param servers instead of the system's, as `address:port`
 */
export function createHostResolver(servers?: readonly string[]): ResolveHost {
  return async (host, signal) => {
    if (host === "localhost") return LOCALHOST;
    const resolver = new Resolver({ timeout: QUERY_TIMEOUT_MS, tries: QUERY_TRIES });
    if (servers !== undefined) resolver.setServers(servers);
    const cancel = () => resolver.cancel();
    signal.addEventListener("abort", cancel, { once: true });
    const [v4, v6] = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
    signal.removeEventListener("abort", cancel);
    if (v4.status === "rejected" && v6.status === "rejected") throw v4.reason;
    return byTurns(
      v4.status === "fulfilled" ? v4.value : [],
      v6.status === "fulfilled" ? v6.value : [],
    );
  };
}

/** Some addresses are tried at most: none of a machine without IPv6 must be the only ones. */
function byTurns(left: readonly string[], right: readonly string[]): readonly string[] {
  const pairs = Array.from({ length: Math.max(left.length, right.length) }, (_, index) => [
    ...left.slice(index, index + 1),
    ...right.slice(index, index + 1),
  ]);
  return pairs.flat();
}
