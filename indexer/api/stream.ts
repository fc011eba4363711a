/**
 * `/v1/stream`: each indexed block as a server-sent event. A reader is told of blocks out of the
 * tables at its own pace, so that nothing queues up for it and nothing is left out.
 */
import type { HttpReply } from "../../runtime/http/http-reply.js";
import type { HttpRequest } from "../../runtime/http/http-route.js";
import { createWakeup, type Wakeup } from "../../runtime/process/task.js";
import { IndexerError } from "../errors.js";
import { readProgress } from "../store/progress.js";
import { LIVE_SCHEMA as s } from "../store/schema.js";
import { type ApiContext, hexOf } from "./reads.js";

/** Blocks read at a time. */
const PAGE_BLOCKS = 200;

/** A reader without news gets a comment after this time, so that nobody thinks it dead. */
const KEEP_ALIVE_MS = 15_000;

/** Time between two looks: another process that writes the index does not wake this one. */
const LOOK_MS = 1_000;

/** The readers of one process. */
export class BlockStream {
  private readonly bells = new Set<Wakeup>();

  constructor(
    private readonly context: ApiContext,
    private readonly options: { readonly maxReaders: number; readonly signal: AbortSignal },
  ) {}

  /** New blocks are there. */
  wake(): void {
    for (const bell of this.bells) bell.wake();
  }

  /** @throws TOO_MANY_STREAMS */
  async open({ headers, signal }: HttpRequest): Promise<HttpReply> {
    this.assertRoom();
    const last = headers["last-event-id"];
    const isHeight = typeof last === "string" && /^[0-9]{1,9}$/.test(last);
    const progress = await readProgress(this.context.database, s);
    // Others may have come meanwhile.
    this.assertRoom();
    const start = isHeight ? Number(last) : (progress?.height ?? -1);
    const ending = AbortSignal.any([signal, this.options.signal]);
    return {
      headers: { "content-type": "text/event-stream", "cache-control": "no-store" },
      stream: this.events(start, ending),
    };
  }

  /** @throws TOO_MANY_STREAMS */
  private assertRoom(): void {
    if (this.bells.size >= this.options.maxReaders) {
      throw new IndexerError("TOO_MANY_STREAMS", "too many readers: poll /v1/blocks instead");
    }
  }

  /** A reader counts from the first piece on: who was gone before it is never told that it is over. */
  private async *events(start: number, signal: AbortSignal): AsyncGenerator<Buffer, void> {
    const bell = createWakeup();
    this.bells.add(bell);
    let height = start;
    let silentMs = 0;
    try {
      yield Buffer.from(": open\n\n");
      while (!signal.aborted) {
        const rows = await this.context.database.query<{
          height: number;
          hash: Buffer;
          time: Date;
          transactions: number;
        }>(
          `SELECT height, hash, time, transactions FROM ${s}.block
           WHERE height > $1 ORDER BY height LIMIT $2`,
          [height, PAGE_BLOCKS],
        );
        for (const row of rows) {
          const data = { ...row, hash: hexOf(row.hash), time: row.time.toISOString() };
          yield Buffer.from(`id: ${row.height}\nevent: block\ndata: ${JSON.stringify(data)}\n\n`);
          height = row.height;
        }
        silentMs = rows.length > 0 ? 0 : silentMs + LOOK_MS;
        if (silentMs >= KEEP_ALIVE_MS) {
          silentMs = 0;
          yield Buffer.from(": still here\n\n");
        }
        if (rows.length < PAGE_BLOCKS) await bell.wait({ signal, timeoutMs: LOOK_MS });
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      this.bells.delete(bell);
    }
  }
}
