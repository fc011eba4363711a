/** What the node's WebSocket servers share: who may connect, pings, and how all are ended. */
import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";
import { type RawData, type WebSocket, WebSocketServer } from "ws";
import { COUNTED_BYTES } from "../../runtime/http/held-bytes.js";
import type { ClientMemory } from "./client-memory.js";
import { sendLast } from "../../runtime/http/http-reply.js";
import { isAllowedOrigin } from "../../runtime/http/readers.js";
import { STOP_GRACE_MS } from "./http-listener.js";
import { isOwnOrigin, isSocketOrigin } from "./socket-origins.js";
import { UnreadFrames } from "./unread-frames.js";

/**
 * WebSocket status "service restart": come again. At 1001 ("going away") web3.js does not, whatever its
 * `autoReconnect` says, and the subscriptions of web3.py end as if they had been told to.
 */
const SERVICE_RESTART = 1012;

/**
 * The largest message may come in fragments of this size. Clients of Go send one for each kilobyte
 * (go-ethereum's), and the library's own bound of 16,384 is less than a large batch of theirs.
 */
const LEAST_FRAGMENT_BYTES = 256;

/** Part of the grace of a stop in which answers that are under way may still be given. */
const ANSWER_GRACE_MS = 500;

/** A client as its server ends it. */
export interface SocketClient {
  /** Takes no more requests. @returns when those that run have their answers; may be never */
  settle(): Promise<void>;
}

/** What a server makes of its clients. */
export interface WebSocketOptions {
  /** Largest message that is read. */
  readonly maxMessageBytes: number;
  /** Time between pings; a client of which nothing came since the last one is ended. */
  readonly pingIntervalMs: number;
  /** Web pages that may connect, "*" for all; programs send no Origin, or the server's own. */
  readonly allowedOrigins: readonly string[];
  /** More of them, as `ws-origins` writes them. */
  readonly socketOrigins?: readonly string[];
  /** Status line for an upgrade that is not accepted. @param open clients that are connected */
  refusal(request: IncomingMessage, open: number): string | undefined;
  connect(socket: WebSocket, request: IncomingMessage): SocketClient;
  /** What the clients of all servers together may make the node keep. */
  readonly memory: Pick<ClientMemory, "unread">;
}

/** A client that is connected. */
interface Connection {
  /** Whether something came since the last ping. */
  hasCome: boolean;
  readonly client: SocketClient;
}

/** The WebSocket clients of an HTTP server. */
export class WebSockets {
  private readonly connections = new Map<WebSocket, Connection>();
  /** Connections of clients that are refused, until they are closed: the server knows of them no more. */
  private readonly refused = new Set<Duplex>();
  private readonly sockets: WebSocketServer;
  private pings: NodeJS.Timeout | undefined;
  private isClosing = false;

  constructor(
    server: Server,
    private readonly options: WebSocketOptions,
  ) {
    const maxPayload = options.maxMessageBytes;
    const bounds = { maxPayload, maxFragments: Math.ceil(maxPayload / LEAST_FRAGMENT_BYTES) };
    this.sockets = new WebSocketServer({ noServer: true, clientTracking: false, ...bounds });
    server.on("upgrade", (request: IncomingMessage, stream: Duplex, head: Buffer) => {
      const isWebSocket = request.headers.upgrade?.toLowerCase() === "websocket";
      if (isWebSocket) this.upgrade(request, stream, head);
      else readAgain(server, request, stream, head);
    });
    server.once("listening", () => {
      this.pings = setInterval(() => {
        for (const [socket, state] of this.connections) ping(socket, state);
      }, options.pingIntervalMs);
    });
  }

  /** Clients that are connected. */
  get size(): number {
    return this.connections.size;
  }

  /**
   * Ends all connections, politely at first: what is asked for is answered, where that is soon, and nothing
   * more is begun. Who is told to come again does so at once: new ones are refused, or the server behind them
   * would wait for their end for ever.
   */
  async close(): Promise<void> {
    this.isClosing = true;
    clearInterval(this.pings);
    const open = [...this.connections.keys()];
    const end = (socket: WebSocket) => socket.close(SERVICE_RESTART, "server stops");
    const answers = setTimeout(() => open.forEach(end), ANSWER_GRACE_MS);
    const closed = [...this.connections].map(
      ([socket, { client }]) =>
        new Promise<void>((resolve) => {
          socket.once("close", () => resolve());
          void client.settle().then(() => end(socket));
        }),
    );
    for (const stream of this.refused) {
      closed.push(new Promise((resolve) => void stream.once("close", () => resolve())));
    }
    const timer = setTimeout(() => {
      for (const socket of open) socket.terminate();
      for (const stream of this.refused) stream.destroy();
    }, STOP_GRACE_MS);
    await Promise.all(closed);
    clearTimeout(answers);
    clearTimeout(timer);
  }

  private upgrade(request: IncomingMessage, stream: Duplex, head: Buffer): void {
    const refusal = this.refusal(request);
    if (refusal !== undefined) {
      this.refuse(stream, refusal);
      return;
    }
    this.sockets.handleUpgrade(request, stream, head, (socket) => {
      this.boundUnread(socket, stream);
      const come = () => (connection.hasCome = true);
      socket.on("pong", come);
      socket.on("message", come);
      socket.once("close", () => this.connections.delete(socket));
      const connection = { hasCome: true, client: this.options.connect(socket, request) };
      this.connections.set(socket, connection);
    });
  }

  private refuse(stream: Duplex, refusal: string): void {
    stream.on("error", () => stream.destroy());
    this.refused.add(stream);
    stream.once("close", () => this.refused.delete(stream));
    // A server that ends waits for nobody who comes now.
    if (this.isClosing) stream.once("finish", () => stream.destroy());
    sendLast(stream, `HTTP/1.1 ${refusal}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  }

  /** Counts what has come of a message that is not whole: the library keeps it until it is. */
  private boundUnread(socket: WebSocket, stream: Duplex): void {
    const unread = this.options.memory.unread.hold(() => socket.terminate());
    const frames = new UnreadFrames();
    // Before the library looks at it: it has to be counted by then.
    stream.prependListener("data", (chunk: Buffer) => {
      frames.add(chunk);
      if (frames.heldBytes > COUNTED_BYTES) unread.update(frames.heldBytes);
      else unread.release();
    });
    socket.once("close", () => unread.release());
  }

  private refusal(request: IncomingMessage): string | undefined {
    if (!this.isAdmitted(request.headers)) return "403 Forbidden";
    if (this.isClosing) return "503 Service Unavailable";
    return this.options.refusal(request, this.size);
  }

  private isAdmitted({ origin, host }: IncomingMessage["headers"]): boolean {
    if (origin === undefined || isOwnOrigin(origin, host)) return true;
    const { allowedOrigins, socketOrigins = [] } = this.options;
    return isAllowedOrigin(origin, allowedOrigins) || isSocketOrigin(origin, socketOrigins);
  }
}

/**
 * Reads a request again without its wish for another protocol, which is to be passed over (RFC 9110, 7.8):
 * clients that would rather have HTTP/2, Java's among them, begin each connection with it. Node gives all
 * such requests away as soon as a server takes any.
 */
function readAgain(
  server: Server,
  { method, url, httpVersion, rawHeaders }: IncomingMessage,
  stream: Duplex,
  head: Buffer,
): void {
  // An answer that is still due would be mixed up with the one to this request.
  const due: unknown = Reflect.get(stream, "_httpMessage");
  if (due !== undefined && due !== null) {
    stream.destroy();
    return;
  }
  let text = `${method} ${url} HTTP/${httpVersion}\r\n`;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const [name = "", value = ""] = rawHeaders.slice(at, at + 2);
    if (name.toLowerCase() !== "upgrade") text += `${name}: ${value}\r\n`;
  }
  stream.unshift(Buffer.concat([Buffer.from(`${text}\r\n`, "latin1"), head]));
  server.emit("connection", stream);
}

/**
 * Asks whether the client is there. Of a client that is not read, because it has asked for much, the answer
 * waits behind its requests: its silence says nothing.
 */
function ping(socket: WebSocket, state: Connection): void {
  if (!state.hasCome) {
    socket.terminate();
    return;
  }
  state.hasCome = socket.isPaused;
  socket.ping();
}

/** A message as one run of bytes, however it came. */
export function messageBytes(data: RawData): Buffer {
  if (Buffer.isBuffer(data)) return data;
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data);
}
