/** 8546: JSON-RPC and subscriptions over WebSocket; every HTTP method is served here as well. */
import { createServer } from "node:http";
import { systemClock } from "../../../../runtime/process/clock.js";
import { RareLine } from "../../../../runtime/process/rare-line.js";
import { listen, type RpcServer, sendText, stopServer } from "../../http-listener.js";
import { USUAL_CONNECTIONS, webSocketClients } from "../../connection-bounds.js";
import { sharedPlaces } from "../../shared-places.js";
import { WebSockets } from "../../web-sockets.js";
import type { EvmApi } from "../api.js";
import type { EvmServerOptions } from "../options.js";
import { SocketConnection } from "./socket-connection.js";

/** Time between pings. */
const PING_INTERVAL_MS = 30_000;

/** Connections that are no clients yet, or never become any; those that are too many read why. */
const OTHER_CONNECTIONS = 256;

/**
 * Starts the server.
 * @throws PORT_TAKEN, LISTEN_FAILED
 */
export async function startEvmSocketServer(
  api: EvmApi,
  options: EvmServerOptions,
): Promise<RpcServer> {
  const server = createServer((_request, response) => {
    sendText(response, 426, "this port speaks WebSocket\n", { Upgrade: "websocket" });
  });
  const { maxConnections = USUAL_CONNECTIONS.evmSocket } = options;
  const { webSocketConnections } = api.limits;
  server.maxConnections = Math.min(maxConnections, webSocketConnections + OTHER_CONNECTIONS);
  const places = sharedPlaces(Math.min(webSocketConnections, webSocketClients(maxConnections)));
  const refused = new RareLine(systemClock);
  const sockets = new WebSockets(server, {
    maxMessageBytes: api.limits.batchBodyBytes,
    pingIntervalMs: PING_INTERVAL_MS,
    allowedOrigins: options.allowedOrigins,
    socketOrigins: options.socketOrigins ?? [],
    refusal({ socket: { remoteAddress } }, open) {
      if (places.hasRoom(remoteAddress)) return undefined;
      refused.happened((times) =>
        api.log.warn(
          { open, times, remoteAddress },
          "WebSocket connections refused: limit of all, or of this client, reached",
        ),
      );
      return "503 Service Unavailable";
    },
    memory: options.memory,
    connect(socket, request) {
      socket.once("close", places.take(request.socket.remoteAddress));
      return new SocketConnection(socket, api, options.memory, request.socket);
    },
  });
  api.metrics.gauge(
    "causeway_jsonrpc_websocket_connections",
    "Open WebSocket connections",
    [],
    (gauge) => gauge.set(sockets.size),
  );
  const address = await listen(server, {
    name: "EVM WebSocket",
    listen: options.listen,
    log: api.log,
  });
  return {
    name: "evm-websocket",
    address,
    async stop() {
      await Promise.all([sockets.close(), stopServer(server)]);
    },
  };
}
