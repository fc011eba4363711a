/** Unary calls of gRPC as load: one at a time on each connection, bytes in and out. */
import * as grpc from "@grpc/grpc-js";
import { type LoadResult, percentiles } from "./http-load.js";

/** What a loop does. */
export interface GrpcLoopOptions {
  /** Host and port. */
  readonly target: string;
  /** "/package.Service/Method". */
  readonly path: string;
  /** The encoded request. */
  readonly request: Uint8Array;
  readonly connections: number;
  readonly durationMs: number;
}

/**
 * Each connection sends the next call when its last one is answered.
 * @throws Error of a call that is not answered with a result
 */
export async function grpcLoop(options: GrpcLoopOptions): Promise<LoadResult> {
  const { connections, durationMs } = options;
  const latenciesMs: number[] = [];
  const startMs = performance.now();
  const endMs = startMs + durationMs;
  const worker = async () => {
    // Clients of one address share a connection otherwise.
    const own = { "grpc.use_local_subchannel_pool": 1 };
    const client = new grpc.Client(options.target, grpc.credentials.createInsecure(), own);
    try {
      for (let sentMs = performance.now(); sentMs < endMs; ) {
        await call(client, options);
        const nowMs = performance.now();
        latenciesMs.push(nowMs - sentMs);
        sentMs = nowMs;
      }
    } finally {
      client.close();
    }
  };
  await Promise.all(Array.from({ length: connections }, worker));
  const seconds = (performance.now() - startMs) / 1_000;
  const count = latenciesMs.length;
  return { count, perSecond: count / seconds, ...percentiles(latenciesMs) };
}

function call(client: grpc.Client, { path, request }: GrpcLoopOptions): Promise<Buffer> {
  const same = (bytes: Buffer) => bytes;
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(path, same, same, Buffer.from(request), (error, answer) => {
      if (error !== null || answer === undefined) reject(error ?? new Error("no answer"));
      else resolve(answer);
    });
  });
}
