/**
 * How many connections each of a node's servers takes. Each costs a file descriptor, and whoever finds none
 * left cannot write: a validator that cannot note what it signed ends. So all of them together take no more
 * than the other parts of the process leave.
 */
import { LEAST_CONNECTIONS } from "../../runtime/http/connections/listening.js";

/** The node's servers. */
export type ServerName = "evmHttp" | "evmSocket" | "comet" | "rest" | "grpc" | "metrics";

/** Connections at once of each server; 0 where it is not served. */
export type ConnectionBounds = Readonly<Record<ServerName, number>>;

/** Connections at once of a server of which nothing else is said. */
export const MOST_CONNECTIONS = 4_096;

/** The bounds of servers that have no setting for it, where files are plenty. */
export const USUAL_CONNECTIONS = {
  evmHttp: MOST_CONNECTIONS,
  /** WebSocket clients, and connections that are still in their handshake or are being refused. */
  evmSocket: 1_256,
  /** WebSockets included; integrators may hold at least 500. */
  comet: 1_024,
  /** Whoever reads metrics is one's own: few. */
  metrics: 256,
} as const;

/**
 * What each server has before any has more. The kit's own processes ask on 8545, each over as many as 64
 * connections at once: what strangers hold elsewhere is not to take these from them.
 */
const FIRST_CONNECTIONS: ConnectionBounds = {
  evmHttp: 256,
  evmSocket: 64,
  comet: 64,
  rest: 16,
  grpc: 16,
  metrics: 8,
};

/**
 * The bounds that are wanted, or smaller ones where all together are more than there is room for: to each
 * its first connections, and of what is left the same part of the others that it wants.
 * @param files that connections may take, all together
 * @returns `wanted` itself where there is room
 */
export function connectionBounds(wanted: ConnectionBounds, files: number): ConnectionBounds {
  if (totalOf(wanted) <= files) return wanted;
  const first = ofEach((name) => Math.min(wanted[name], FIRST_CONNECTIONS[name]));
  const firstFiles = totalOf(first);
  if (files < firstFiles) {
    const part = files / firstFiles;
    const fitted = (count: number) => Math.max(LEAST_CONNECTIONS, Math.floor(count * part));
    return ofEach((name) => Math.min(wanted[name], fitted(first[name])));
  }
  const part = (files - firstFiles) / (totalOf(wanted) - firstFiles);
  return ofEach((name) => first[name] + Math.floor((wanted[name] - first[name]) * part));
}

function totalOf(bounds: ConnectionBounds): number {
  return Object.values(bounds).reduce((sum, count) => sum + count, 0);
}

function ofEach(count: (name: ServerName) => number): ConnectionBounds {
  return {
    evmHttp: count("evmHttp"),
    evmSocket: count("evmSocket"),
    comet: count("comet"),
    rest: count("rest"),
    grpc: count("grpc"),
    metrics: count("metrics"),
  };
}

/** Part of the connections of a WebSocket port that is for clients; others may still be refused in words. */
const CLIENT_SHARE = 0.8;

/** WebSocket clients of a server with so many connections. */
export function webSocketClients(connections: number): number {
  return Math.floor(connections * CLIENT_SHARE);
}
