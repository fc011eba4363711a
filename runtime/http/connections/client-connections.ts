/** Connections of a server that strangers reach: so many at all, and of them a part for each client. */
import type { IncomingMessage } from "node:http";
import { ClientPlaces } from "../../turns/client-places.js";

/**
 * Of all connections, the part that one client may have. A proxy on another machine, or the gateway
 * of a network of containers, speaks for many: so it is large, and the rest is left to whoever does
 * not come through it.
 */
const CLIENT_SHARE = 1 / 2;

/** A connection. */
type Socket = IncomingMessage["socket"];

/** A server of connections, whatever is asked on them. */
export interface ConnectionServer {
  maxConnections: number;
  on(event: "connection", arrived: (socket: Socket) => void): unknown;
}

/**
 * Refuses connections beyond the most and, where strangers may ask, of a client of another machine those
 * beyond its part. Behind keys there are no strangers.
 */
export function boundConnections(
  server: ConnectionServer,
  { most, isOpen }: { readonly most: number; readonly isOpen: boolean },
): void {
  server.maxConnections = most;
  if (!isOpen) return;
  const places = new ClientPlaces({ most, share: CLIENT_SHARE });
  const known = new WeakSet<Socket>();
  server.on("connection", (socket) => {
    // A server may hand itself one again, to read it in another way.
    if (known.has(socket)) return;
    known.add(socket);
    const { remoteAddress } = socket;
    if (places.hasRoom(remoteAddress)) socket.once("close", places.take(remoteAddress));
    else socket.destroy();
  });
}
