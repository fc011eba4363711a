/**
 * 9090: gRPC. Methods are the registry's; messages are encoded by its descriptors, so the library
 * sees bytes only. A method that is not served is answered with UNIMPLEMENTED by the library.
 */
import { createServer, type Socket } from "node:net";
import {
  type handleUnaryCall,
  Metadata,
  type sendUnaryData,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServiceDefinition,
} from "@grpc/grpc-js";
import { absentModuleText } from "../../../chain/cosmos/absent-modules.js";
import type { MethodType } from "../../../chain/protobuf/descriptor-file.js";
import type { ListenAddress } from "../../../runtime/config/config-values.js";
import { boundConnections } from "../../../runtime/http/connections/client-connections.js";
import type { Clock } from "../../../runtime/process/clock.js";
import type { Logger } from "../../../runtime/process/logger.js";
import { setOwner } from "../../../runtime/process/work-owner.js";
import { clientOf } from "../../../runtime/turns/client-address.js";
import { readInTurn } from "../../../runtime/turns/resting-lane.js";
import { answerBytes } from "../cosmos/answers.js";
import { faultOf, GRPC_CODES, QueryFault } from "../cosmos/errors.js";
import { type QueryRegistry, readRequest, type ServedMethod } from "../cosmos/registry.js";
import { type ClientMemory, createClientMemory } from "../client-memory.js";
import { bind, type RpcServer, STOP_GRACE_MS } from "../http-listener.js";
import { RateLimit, TOO_OFTEN } from "../rate-limit.js";
import { holdCalls } from "./held-calls.js";
import { REFLECTION_SERVICES, reflectionService } from "./reflection.js";

/** What the server needs. */
export interface GrpcServerOptions {
  readonly listen: ListenAddress;
  readonly queries: QueryRegistry;
  /** Connections at once. */
  readonly maxConnections: number;
  /** Requests that one address may make a second; 0 sets no bound. */
  readonly requestsPerSecond: number;
  /** What the clients of all servers together may make the node keep; by default its own bounds. */
  readonly memory?: ClientMemory;
  readonly clock: Clock;
  readonly log: Logger;
}

const HEIGHT_KEY = "x-cosmos-block-height";

/** Largest request, as the SDK's default; a transaction is far smaller. */
const MAX_RECEIVED_BYTES = 10 * 1024 * 1024;

/** Calls at once of one connection. */
const MAX_STREAMS = 100;

/** Connections that do nothing, and such that do not answer, are closed. */
const MAX_IDLE_MS = 10 * 60_000;
const KEEP_ALIVE_MS = 60_000;
const KEEP_ALIVE_TIMEOUT_MS = 20_000;

/**
 * Starts the server.
 * @throws PORT_TAKEN, LISTEN_FAILED
 */
export async function startGrpcServer(options: GrpcServerOptions): Promise<RpcServer> {
  const { queries, clock, log, memory = createClientMemory(clock) } = options;
  const server = new Server({
    interceptors: [holdCalls(memory, log)],
    "grpc.max_receive_message_length": MAX_RECEIVED_BYTES,
    "grpc.max_send_message_length": -1,
    "grpc.max_concurrent_streams": MAX_STREAMS,
    "grpc.max_connection_idle_ms": MAX_IDLE_MS,
    "grpc.keepalive_time_ms": KEEP_ALIVE_MS,
    "grpc.keepalive_timeout_ms": KEEP_ALIVE_TIMEOUT_MS,
  });
  const calls = new Calls(options);
  for (const { name, methods } of queries.services()) {
    const definition: Record<string, ServiceDefinition[string]> = {};
    const handlers: Record<string, handleUnaryCall<Buffer, Buffer>> = {};
    for (const method of methods.values()) {
      const served = queries.find(method.path);
      if (served === undefined) continue;
      definition[method.name] = { path: method.path, ...UNARY };
      handlers[method.name] = (call, done) => void calls.answer(served, call, done);
    }
    if (Object.keys(definition).length === 0) throw new RangeError(`${name} serves nothing`);
    server.addService(definition, handlers);
  }
  for (const { methods } of queries.types.services()) addAbsent(server, [...methods.values()]);
  const names = [...queries.services().map(({ name }) => name), ...REFLECTION_SERVICES];
  const mayAsk = (peer: string) => calls.mayAsk(peer);
  for (const [definition, handlers] of reflectionService(queries.types, names, mayAsk)) {
    server.addService(definition, handlers);
  }
  // The library's own listener takes any number of connections.
  const listener = createServer();
  boundConnections(listener, { most: options.maxConnections, isOpen: true });
  const address = await bind(listener, { name: "gRPC", ...options });
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const sockets = new Set<Socket>();
  listener.on("connection", (socket) => {
    if (socket.destroyed) return;
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    injector.injectConnection(socket);
  });
  return {
    name: "grpc",
    address,
    async stop() {
      listener.close();
      await stop(server, sockets);
    },
  };
}

/** Methods of a module that other SDK chains have say what serves the same end here. */
function addAbsent(server: Server, methods: readonly MethodType[]): void {
  const definition: Record<string, ServiceDefinition[string]> = {};
  const handlers: Record<string, handleUnaryCall<Buffer, Buffer>> = {};
  for (const { name, path } of methods) {
    const details = absentModuleText(path);
    if (details === undefined) continue;
    definition[name] = { path, ...UNARY };
    handlers[name] = (_call, done) => done({ code: GRPC_CODES.UNIMPLEMENTED, details });
  }
  if (Object.keys(definition).length > 0) server.addService(definition, handlers);
}

/** All that is told of a fault of ours. */
const INTERNAL = "internal error";

const same = (bytes: Buffer): Buffer => bytes;

const UNARY = {
  requestStream: false,
  responseStream: false,
  requestSerialize: same,
  requestDeserialize: same,
  responseSerialize: same,
  responseDeserialize: same,
} as const;

async function stop(server: Server, sockets: ReadonlySet<Socket>): Promise<void> {
  const timer = setTimeout(() => {
    server.forceShutdown();
    // The library waits for ever for a client that has not said a word.
    for (const socket of sockets) socket.destroy();
  }, STOP_GRACE_MS);
  await new Promise<void>((resolve) => {
    server.tryShutdown(() => resolve());
  });
  clearTimeout(timer);
}

class Calls {
  private readonly limit: RateLimit;

  constructor(private readonly options: GrpcServerOptions) {
    this.limit = new RateLimit(options.requestsPerSecond, options.clock);
  }

  /** Counts a request of a peer; false where it has to wait. */
  mayAsk(peer: string): boolean {
    return this.limit.take(addressOf(peer));
  }

  /** Answers a call; a fault that comes while it is refused costs this call, and not the process. */
  async answer(
    served: ServedMethod,
    call: ServerUnaryCall<Buffer, Buffer>,
    done: sendUnaryData<Buffer>,
  ): Promise<void> {
    try {
      await this.answerOrRefuse(served, call, done);
    } catch (error) {
      const { path } = served.method;
      this.options.log.error({ err: error, method: path }, "a call could not be answered");
      done({ code: GRPC_CODES.INTERNAL, details: INTERNAL });
    }
  }

  private async answerOrRefuse(
    served: ServedMethod,
    call: ServerUnaryCall<Buffer, Buffer>,
    done: sendUnaryData<Buffer>,
  ): Promise<void> {
    const { queries, log } = this.options;
    const peer = call.getPeer();
    const owner = { client: clientOf(addressOf(peer)) };
    const gone = new AbortController();
    setOwner(gone.signal, owner);
    call.once("cancelled", () => gone.abort(new DOMException("the client is gone", "AbortError")));
    const whose = { ...owner, signal: gone.signal };
    try {
      if (!this.mayAsk(peer)) throw new QueryFault("RESOURCE_EXHAUSTED", TOO_OFTEN);
      await queries.bounded("grpc", whose, async (asker) => {
        const height = queries.heightOf(call.metadata.get(HEIGHT_KEY)[0]?.toString());
        const { request } = call;
        const read = () => readRequest(served, request);
        const message = await readInTurn(request.length, asker, read);
        const { answer, height: told } = await served.run(message, { height, ...asker });
        const bytes = await answerBytes(served.output, answer, asker.signal);
        const metadata = new Metadata();
        metadata.set(HEIGHT_KEY, told.toString());
        call.sendMetadata(metadata);
        done(null, bytes);
      });
    } catch (error) {
      const fault = faultOf(error);
      if (fault === undefined)
        log.error({ err: error, method: served.method.path }, "a query failed");
      const { code, message } = fault ?? new QueryFault("INTERNAL", INTERNAL);
      done({ code: GRPC_CODES[code], details: message });
    }
  }
}

/** The host of "host:port", IPv6 included. */
function addressOf(peer: string): string {
  return peer.slice(0, Math.max(0, peer.lastIndexOf(":")));
}
