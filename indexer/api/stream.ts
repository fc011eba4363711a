/**
 * `/v1/stream`: each indexed block as a server-sent event. A reader is told of blocks out of the
 * tables at its own pace, so that nothing queues up for it and nothing is left out. An index that was made
 * anew of a chain that has lost blocks may end below the last one that a reader has, or have another block
 * there: he is told so, once, and goes on from its end.
 */
import { ClientPlaces } from "../../runtime/turns/client-places.js";
import type { HttpReply } from "../../runtime/http/http-reply.js";
import type { HttpRequest } from "../../runtime/http/http-route.js";
import { createWakeup, type Wakeup } from "../../runtime/process/task.js";
import { IndexerError } from "../errors.js";
import { readProgress } from "../store/progress.js";
import { LIVE_SCHEMA as s } from "../store/schema.js";
import { invalidField } from "./inputs.js";
import { type ApiContext, hexOf } from "./reads.js";

/** Blocks read at a time. */
const PAGE_BLOCKS = 200;

/** A reader without news gets a comment after this time, so that nobody thinks it dead. */
const KEEP_ALIVE_MS = 15_000;

/** Time between two looks: another process that writes the index does not wake this one. */
const LOOK_MS = 1_000;

/** The id of an event, or a height. */
const EVENT_ID = /^(?<height>-1|[0-9]{1,9})(?::(?<hash>0x[0-9a-f]{64}))?$/i;

/** The readers of one process. */
export class BlockStream {
  private readonly wakeups = new Set<Wakeup>();
  private readonly places: ClientPlaces;

  constructor(
    private readonly context: ApiContext,
    private readonly options: { readonly maxReaders: number; readonly signal: AbortSignal },
  ) {
    this.places = new ClientPlaces({ most: options.maxReaders });
    // Once, and not once for each reader: Node remembers for ever what it made of a signal for one.
    options.signal.addEventListener("abort", () => this.wake(), { once: true });
  }

  /** New blocks are there, or there will be none. */
  wake(): void {
    for (const wakeup of this.wakeups) wakeup.wake();
  }

  /** @throws TOO_MANY_STREAMS, INVALID_FIELD */
  async open({ headers, signal, remoteAddress }: HttpRequest): Promise<HttpReply> {
    this.assertRoom(remoteAddress);
    const known = placeOf(headers["last-event-id"]);
    const progress = await readProgress(this.context.database, s);
    // Others may have come meanwhile.
    this.assertRoom(remoteAddress);
    const start = known ?? { height: progress?.height ?? -1, hash: progress?.hash };
    return {
      headers: { "content-type": "text/event-stream", "cache-control": "no-store" },
      stream: this.events(start, remoteAddress, signal),
    };
  }

  /** @throws TOO_MANY_STREAMS */
  private assertRoom(remoteAddress: string | undefined): void {
    if (!this.places.hasRoom(remoteAddress)) {
      throw new IndexerError("TOO_MANY_STREAMS", "too many readers: poll /v1/blocks instead");
    }
  }

  /** A reader counts from the first piece on: who was gone before it is never told that it is over. */
  private async *events(
    start: Place,
    remoteAddress: string | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<Buffer, void> {
    const leave = this.places.take(remoteAddress);
    const wakeup = createWakeup();
    this.wakeups.add(wakeup);
    const isOver = () => signal.aborted || this.options.signal.aborted;
    let last = start;
    let silentMs = 0;
    try {
      yield Buffer.from(": open\n\n");
      while (!isOver()) {
        const found = await this.blocksFrom(last.height);
        const known = last.height < 0 ? undefined : found.shift();
        if (last.height >= 0 && !isSame(known, last)) {
          last = await this.end();
          const data = { height: last.height, hash: last.hash ?? null };
          yield event("rewound", last, data);
          silentMs = 0;
          // Tables that are being put in place of others may be seen in part: nobody is told in a loop.
          await wakeup.wait({ signal, timeoutMs: LOOK_MS });
          continue;
        }
        const rows = found.slice(0, PAGE_BLOCKS);
        for (const row of rows) {
          const hash = hexOf(row.hash);
          last = { height: row.height, hash };
          yield event("block", last, { ...row, hash, time: row.time.toISOString() });
        }
        silentMs = rows.length > 0 ? 0 : silentMs + LOOK_MS;
        if (silentMs >= KEEP_ALIVE_MS) {
          silentMs = 0;
          yield Buffer.from(": still here\n\n");
        }
        if (rows.length < PAGE_BLOCKS) await wakeup.wait({ signal, timeoutMs: LOOK_MS });
      }
    } catch (error) {
      if (!isOver()) throw error;
    } finally {
      this.wakeups.delete(wakeup);
      leave();
    }
  }

  /** Blocks from one that a reader has on, that one included. */
  private async blocksFrom(height: number): Promise<BlockRow[]> {
    const rows = await this.context.database.query<BlockRow>(
      `SELECT height, hash, time, transactions FROM ${s}.block
       WHERE height >= $1 ORDER BY height LIMIT $2`,
      [height, PAGE_BLOCKS + 1],
    );
    return [...rows];
  }

  private async end(): Promise<Place> {
    const progress = await readProgress(this.context.database, s);
    return { height: progress?.height ?? -1, hash: progress?.hash };
  }
}

/** The last block that a reader has. */
interface Place {
  readonly height: number;
  /** Undefined where he has only said its height, and before the first block. */
  readonly hash: string | undefined;
}

interface BlockRow {
  readonly height: number;
  readonly hash: Buffer;
  readonly time: Date;
  readonly transactions: number;
}

/** Whether the index has the block of a place. */
function isSame(row: BlockRow | undefined, { height, hash }: Place): boolean {
  if (row?.height !== height) return false;
  return hash === undefined || hexOf(row.hash) === hash;
}

/**
 * What a reader was told last: a height, and the hash of its block where he gives the whole id. Undefined
 * for one who was told nothing; whoever was told something and began at the end would miss all between.
 * @throws INVALID_FIELD
 */
function placeOf(id: string | readonly string[] | undefined): Place | undefined {
  if (id === undefined || id === "") return undefined;
  const parts = typeof id === "string" ? EVENT_ID.exec(id)?.groups : undefined;
  if (parts === undefined) {
    throw invalidField("Last-Event-ID", "it is the id of an event, height:hash, or a height");
  }
  return { height: Number(parts["height"]), hash: parts["hash"]?.toLowerCase() };
}

/**
 * The id has the hash, too: a reader comes back with it, and by the height alone an index that was made anew
 * meanwhile, and has grown past it again, would pass for the one that he knows.
 */
function event(name: "block" | "rewound", { height, hash }: Place, data: unknown): Buffer {
  const id = hash === undefined ? `${height}` : `${height}:${hash}`;
  return Buffer.from(`id: ${id}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
}
