/** 8546: JSON-RPC and subscriptions over WebSocket; every HTTP method is served here as well. */
import { createServer, type IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import { listen, type RpcServer, sendText, stopServer } from "../http-listener.js";
import type { EvmApi } from "./api.js";
import type { EvmServerOptions } from "./options.js";
import { isAllowedOrigin } from "./origin.js";
import { SocketConnection } from "./socket-connection.js";

/** Time between pings; a connection that did not answer the last one is ended. */
const PING_INTERVAL_MS = 30_000;

/** Time that clients get to answer a close frame when the server stops. */
const STOP_GRACE_MS = 1_000;

/** WebSocket status "going away". */
const GOING_AWAY = 1001;

/**
 * Starts the server.
 * @throws PORT_TAKEN, LISTEN_FAILED
 */
export async function startEvmSocketServer(
  api: EvmApi,
  options: EvmServerOptions,
): Promise<RpcServer> {
  const connections = new Map<WebSocket, SocketConnection>();
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: api.limits.batchBodyBytes,
    clientTracking: false,
  });
  const server = createServer((_request, response) => {
    sendText(response, 426, "this port speaks WebSocket\n", { Upgrade: "websocket" });
  });
  server.on("upgrade", (request: IncomingMessage, stream: Duplex, head: Buffer) => {
    const refusal = upgradeRefusal(api, options, request, connections.size);
    if (refusal !== undefined) {
      stream.on("error", () => stream.destroy());
      stream.end(`HTTP/1.1 ${refusal}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
      return;
    }
    sockets.handleUpgrade(request, stream, head, (socket) => {
      connections.set(socket, new SocketConnection(socket, api));
      socket.once("close", () => connections.delete(socket));
    });
  });
  api.metrics.gauge(
    "causeway_jsonrpc_websocket_connections",
    "Open WebSocket connections",
    [],
    (gauge) => gauge.set(connections.size),
  );
  const address = await listen(server, "EVM WebSocket", options.listen);
  const pings = setInterval(() => {
    for (const connection of connections.values()) connection.ping();
  }, PING_INTERVAL_MS);
  return {
    name: "evm-websocket",
    address,
    async stop() {
      clearInterval(pings);
      await closeAll([...connections.keys()]);
      await stopServer(server);
    },
  };
}

/** Status line for an upgrade that is not accepted. */
function upgradeRefusal(
  api: EvmApi,
  options: EvmServerOptions,
  request: IncomingMessage,
  open: number,
): string | undefined {
  const { origin } = request.headers;
  if (origin !== undefined && !isAllowedOrigin(origin, options.allowedOrigins)) {
    return "403 Forbidden";
  }
  if (open >= api.limits.webSocketConnections) {
    api.log.warn({ open }, "WebSocket connection refused: limit reached");
    return "503 Service Unavailable";
  }
  return undefined;
}

async function closeAll(sockets: readonly WebSocket[]): Promise<void> {
  const closed = sockets.map(
    (socket) =>
      new Promise<void>((resolve) => {
        socket.once("close", () => resolve());
        socket.close(GOING_AWAY, "server stops");
      }),
  );
  const timer = setTimeout(() => {
    for (const socket of sockets) socket.terminate();
  }, STOP_GRACE_MS);
  await Promise.all(closed);
  clearTimeout(timer);
}
