/**
 * A cheap HTTP client for load: one request at a time per socket, written as ready bytes, answers
 * only counted unless wanted. A general client would cost more than some of the servers measured.
 */
import { connect, type Socket } from "node:net";

/** An answer; `body` is empty unless it was asked for. */
export interface LoadAnswer {
  readonly status: number;
  readonly sizeBytes: number;
  readonly body: Buffer;
}

/** What a request says; method POST with JSON unless `method` says GET. */
export interface LoadRequest {
  readonly path?: string;
  readonly method?: "GET" | "POST";
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Rate and latencies of a run. */
export interface LoadResult {
  readonly count: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const HEAD_END = Buffer.from("\r\n\r\n");

/** A request as the bytes that go over the wire. */
export function encodeRequest(url: string, request: LoadRequest): Buffer {
  const { host, pathname } = new URL(request.path ?? "/", url);
  const body = Buffer.from(request.body ?? "");
  const method = request.method ?? "POST";
  const headers: Record<string, string> = { Host: host, Accept: "*/*", ...request.headers };
  if (method === "POST") {
    headers["Content-Type"] = "application/json";
    headers["Content-Length"] = String(body.length);
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const path = new URL(request.path ?? "/", url);
  const head = `${method} ${pathname}${path.search} HTTP/1.1\r\n${lines.join("")}\r\n`;
  return Buffer.concat([Buffer.from(head), body]);
}

/** The bytes of a JSON-RPC call. */
export function encodeCall(
  url: string,
  method: string,
  params: readonly unknown[] | Readonly<Record<string, unknown>>,
): Buffer {
  return encodeRequest(url, { body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }) });
}

interface Waiting {
  readonly wantsBody: boolean;
  readonly resolve: (answer: LoadAnswer) => void;
  readonly reject: (error: Error) => void;
}

/** One keep-alive connection. */
export class LoadConnection {
  private readonly socket: Socket;
  private waiting: Waiting | undefined;
  private head: Buffer = Buffer.alloc(0);
  private status = 0;
  /** Bytes of the body still to come; -1 while the head is read. */
  private missingBytes = -1;
  private sizeBytes = 0;
  private chunks: Buffer[] = [];

  constructor(url: string) {
    const { hostname, port } = new URL(url);
    this.socket = connect({ host: hostname, port: Number(port), noDelay: true });
    this.socket.on("data", (chunk: Buffer) => this.read(chunk));
    this.socket.on("error", (error) => this.fail(error));
    this.socket.on("close", () => this.fail(new Error(`${url} closed the connection`)));
  }

  /** Sends bytes of `encodeRequest` and resolves with the whole answer. */
  send(bytes: Buffer, options: { readonly wantsBody: boolean }): Promise<LoadAnswer> {
    return new Promise((resolve, reject) => {
      this.waiting = { wantsBody: options.wantsBody, resolve, reject };
      this.socket.write(bytes);
    });
  }

  /** Closes the connection. */
  close(): void {
    this.socket.destroy();
  }

  private fail(error: Error): void {
    this.waiting?.reject(error);
    this.waiting = undefined;
  }

  private read(chunk: Buffer): void {
    let rest = chunk;
    if (this.missingBytes < 0) {
      this.head = this.head.length === 0 ? chunk : Buffer.concat([this.head, chunk]);
      const end = this.head.indexOf(HEAD_END);
      if (end < 0) return;
      const text = this.head.toString("latin1", 0, end);
      const length = /\r\ncontent-length: *([0-9]+)/i.exec(text)?.[1];
      if (length === undefined) {
        this.fail(new Error(`the server sent no Content-Length: ${text.slice(0, 200)}`));
        return;
      }
      this.status = Number(text.slice(9, 12));
      this.missingBytes = Number(length);
      this.sizeBytes = this.missingBytes;
      rest = this.head.subarray(end + HEAD_END.length);
      this.head = Buffer.alloc(0);
    }
    this.missingBytes -= rest.length;
    if (this.waiting?.wantsBody === true) this.chunks.push(rest);
    if (this.missingBytes > 0) return;
    const answer = {
      status: this.status,
      sizeBytes: this.sizeBytes,
      body: Buffer.concat(this.chunks),
    };
    const { waiting } = this;
    this.waiting = undefined;
    this.missingBytes = -1;
    this.chunks = [];
    waiting?.resolve(answer);
  }
}

/** What a closed loop does. */
export interface LoopOptions {
  readonly url: string;
  readonly connections: number;
  /** The next request's bytes; undefined ends the run. */
  readonly next: () => Buffer | undefined;
  /** Ends the run earlier. */
  readonly durationMs?: number;
  /** Looks into each answer; throw to fail the run. */
  readonly check?: (answer: LoadAnswer) => void;
}

/**
 * Each connection sends the next request when its last one is answered.
 * @throws Error when an answer's status is not 200 or 201
 */
export async function closedLoop(options: LoopOptions): Promise<LoadResult> {
  const { url, check } = options;
  const wantsBody = check !== undefined;
  const latenciesMs: number[] = [];
  const startMs = performance.now();
  const endMs = startMs + (options.durationMs ?? Number.POSITIVE_INFINITY);
  const worker = async () => {
    const connection = new LoadConnection(url);
    try {
      let sentMs = performance.now();
      for (let bytes = options.next(); bytes !== undefined && sentMs < endMs; ) {
        const answer = await connection.send(bytes, { wantsBody });
        if (answer.status !== 200 && answer.status !== 201) {
          throw new Error(`${url} answered ${answer.status} ${answer.body.toString()}`);
        }
        check?.(answer);
        const nowMs = performance.now();
        latenciesMs.push(nowMs - sentMs);
        sentMs = nowMs;
        bytes = options.next();
      }
    } finally {
      connection.close();
    }
  };
  await Promise.all(Array.from({ length: options.connections }, worker));
  const seconds = (performance.now() - startMs) / 1_000;
  const count = latenciesMs.length;
  return { count, perSecond: count / seconds, ...percentiles(latenciesMs) };
}

/** Median and 99th percentile; 0 where there is nothing. */
export function percentiles(valuesMs: readonly number[]): { p50Ms: number; p99Ms: number } {
  const sorted = valuesMs.toSorted((left, right) => left - right);
  const at = (share: number) => sorted[Math.floor((sorted.length - 1) * share)] ?? 0;
  return { p50Ms: at(0.5), p99Ms: at(0.99) };
}
