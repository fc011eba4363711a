/**
 * Where somebody can be dialled, as a setting or a peer writes it. Apart from other values: the offline
 * server reads settings, and reaches nothing of the network's modules.
 */
import { isIP } from "node:net";
import { type ListenAddress, MAX_PORT } from "./config-values.js";

/** Longest name that DNS has. */
const MAX_HOST_LENGTH = 253;

/**
 * Reads where somebody can be dialled: "example.org:26656", "10.0.0.1:26656", "[::1]:26656"; the port is 1 to
 * 65535. Undefined for anything else.
 */
export function readDialAddress(text: string): ListenAddress | undefined {
  const [, ip6, name = "", digits] =
    /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9._-]+)):([0-9]{1,5})$/.exec(text) ?? [];
  const host = ip6 ?? name;
  const port = Number(digits ?? "NaN");
  const isHost = ip6 === undefined ? name.length <= MAX_HOST_LENGTH : isIP(ip6) === 6;
  return isHost && port >= 1 && port <= MAX_PORT ? { host, port } : undefined;
}
