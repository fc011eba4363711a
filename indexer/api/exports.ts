/**
 * Exports: all rows of a kind, written by the database into a file piece by piece, with its SHA-256.
 * One runs at a time, in turns by client; files are kept up to a number and to so many bytes. The oldest of
 * the client that has most goes first: nobody deletes what another one waits for.
 */
import { createHash, randomBytes } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { errorCode, errorMessage } from "../../chain/errors.js";
import type { Logger } from "../../runtime/process/logger.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { openSqlSession } from "../../runtime/sql/sql-session.js";
import { STATEMENT_TIMEOUT } from "../../runtime/sql/time-limit.js";
import { clientOf } from "../../runtime/turns/client-address.js";
import { ClientPlaces } from "../../runtime/turns/client-places.js";
import { Turns } from "../../runtime/turns/turns.js";
import { IndexerError } from "../errors.js";
import { isShownAsset, LIVE_SCHEMA as s } from "../store/schema.js";
import { blockHashAt } from "./reads.js";

/** What to write; the address and asset as hex digits without prefix. */
export interface ExportRequest {
  readonly kind: "transfers" | "transactions" | "balances" | "swaps";
  readonly format: "csv" | "jsonl";
  readonly addressHex: string | undefined;
  readonly assetHex: string | undefined;
  readonly fromHeight: number;
  readonly toHeight: number;
  /** Of the block there as it was asked for. */
  readonly toHash: string;
}

/** An export as the API shows it. */
export interface ExportState {
  readonly id: string;
  readonly status: "waiting" | "running" | "done" | "failed";
  readonly kind: string;
  readonly format: string;
  readonly fromHeight: number;
  readonly toHeight: number;
  readonly toHash: string;
  readonly rows: number | null;
  readonly sizeBytes: number | null;
  readonly sha256: string | null;
  readonly createdAt: string;
  readonly finishedAt: string | null;
  readonly file: string | null;
  readonly failure: string | null;
  readonly failureCode: FailureCode | null;
}

type FailureCode = (typeof TELLING)[number] | "EXPORT_TOO_SLOW" | "EXPORT_FAILED";

/** Failures whose words are for who asked. */
const TELLING = ["EXPORT_TOO_LARGE", "EXPORT_BLOCK_GONE"] as const;

/** Exports that wait for their turn: one client has half of the places, and beyond it one. */
const WAITING = { most: 10, unshared: 1 / 2 };

/** An export, and whose it is. */
interface OwnedExport {
  readonly client: string;
  readonly state: ExportState;
}

/** The files of one home. */
export class Exports {
  /** In the order in which they were asked for. */
  private readonly exports = new Map<string, OwnedExport>();
  private readonly turns = new Turns({ maxRunning: 1, maxWaiting: WAITING.most, full: busy });
  private readonly waiting = new ClientPlaces(WAITING);
  private readonly unfinished = new Set<Promise<void>>();

  private constructor(
    private readonly options: {
      readonly folder: string;
      readonly databaseUrl: string;
      /** Files. */
      readonly kept: number;
      /** Of all files together, the one that is being written included. */
      readonly maxBytes: number;
      /** Of the statement behind one export. */
      readonly timeLimitMs: number;
      readonly log: Logger;
      readonly signal: AbortSignal;
    },
  ) {}

  static async open(options: Exports["options"]): Promise<Exports> {
    await mkdir(options.folder, { recursive: true, mode: 0o700 });
    return new Exports(options);
  }

  /**
   * Deletes what an earlier life left: who asked for it can ask again. To be called by who has the home's
   * port: before that another indexer may be serving these files.
   */
  async deleteLeft(): Promise<void> {
    const { folder } = this.options;
    for (const name of await readdir(folder)) {
      const [, id] = /^([0-9a-f]{32})\.(?:csv|jsonl)(?:\.part)?$/.exec(name) ?? [];
      // One may have been asked for since.
      if (id !== undefined && !this.exports.has(id)) await this.remove(join(folder, name));
    }
  }

  /**
   * @param remoteAddress of who asks
   * @throws EXPORT_BUSY
   */
  create(request: ExportRequest, remoteAddress?: string): ExportState {
    if (!this.waiting.hasRoom(remoteAddress)) throw busy();
    const id = randomBytes(16).toString("hex");
    const { kind, format, fromHeight, toHeight, toHash } = request;
    const state: ExportState = {
      id,
      status: "waiting",
      kind,
      format,
      fromHeight,
      toHeight,
      toHash,
      rows: null,
      sizeBytes: null,
      sha256: null,
      createdAt: new Date().toISOString(),
      finishedAt: null,
      file: null,
      failure: null,
      failureCode: null,
    };
    const client = clientOf(remoteAddress);
    this.exports.set(id, { client, state });
    const done = this.inTurn(client, this.waiting.take(remoteAddress), () => this.run(id, request));
    this.unfinished.add(done);
    void done.finally(() => this.unfinished.delete(done));
    return state;
  }

  /** @throws NOT_FOUND */
  get(id: string | undefined): ExportState {
    const state = this.exports.get(id ?? "")?.state;
    if (state === undefined) throw new IndexerError("NOT_FOUND", "no such export");
    return state;
  }

  /** The file's bytes and form. @throws NOT_FOUND before it is done */
  read(id: string | undefined): {
    readonly state: ExportState;
    readonly bytes: AsyncIterable<Buffer>;
  } {
    const state = this.get(id);
    if (state.status !== "done") {
      throw new IndexerError("NOT_FOUND", `the export is ${state.status}: there is no file`);
    }
    return { state, bytes: bytesOf(this.path(state)) };
  }

  /** Resolves when nothing is being written. */
  async close(): Promise<void> {
    await Promise.all(this.unfinished);
  }

  /** @param giveUpPlace among those who wait */
  private async inTurn(client: string, giveUpPlace: () => void, work: () => Promise<void>) {
    const begin = () => {
      giveUpPlace();
      return work();
    };
    try {
      await this.turns.run(this.options.signal, begin, client);
    } catch (error) {
      // Who waits when the process ends is not told any more.
      if (!this.options.signal.aborted) throw error;
    }
  }

  private async run(id: string, request: ExportRequest): Promise<void> {
    const change = (part: Partial<ExportState>) => {
      const known = this.exports.get(id);
      if (known !== undefined) {
        this.exports.set(id, { ...known, state: { ...known.state, ...part } });
      }
    };
    try {
      this.options.signal.throwIfAborted();
      change({ status: "running" });
      const written = await this.write(id, request);
      change({ status: "done", file: `/v1/exports/${id}/file`, ...written });
    } catch (error) {
      this.options.log.warn({ reason: errorMessage(error) }, "an export failed");
      await this.remove(`${this.path(this.get(id))}.part`);
      change({ status: "failed", ...failureOf(error) });
    }
    change({ finishedAt: new Date().toISOString() });
    await this.deleteBeyond(({ file }) => file !== null);
    await this.deleteBeyond(({ status }) => status === "failed");
  }

  private async write(id: string, request: ExportRequest) {
    const state = this.get(id);
    const { databaseUrl, timeLimitMs, log, signal } = this.options;
    const applicationName = "causeway-indexer-export";
    const session = await openSqlSession({ url: databaseUrl, applicationName, log });
    const part = `${this.path(state)}.part`;
    const hash = createHash("sha256");
    let [sizeBytes, lines] = [0, 0];
    const measured = async function* (this: Exports, pieces: AsyncIterable<Buffer>) {
      for await (const piece of pieces) {
        hash.update(piece);
        sizeBytes += piece.length;
        for (let at = piece.indexOf(10); at >= 0; at = piece.indexOf(10, at + 1)) lines += 1;
        this.assertFits(sizeBytes);
        yield piece;
      }
    }.bind(this);
    try {
      await session.query(`SET statement_timeout = ${Math.ceil(timeLimitMs)}`);
      const source = session.copyOut(copyStatement(request));
      await pipeline(source, measured, createWriteStream(part, { mode: 0o600 }), { signal });
      // Behind the rows: tables that took the place of others meanwhile are not replaced by those again.
      await assertThere(session, request);
    } finally {
      await session.close();
    }
    // Only what is whole takes the place of others; until then there may be twice as much.
    await this.makeRoom(id, sizeBytes);
    await rename(part, this.path(state));
    // No value has a line feed: texts of strangers are not among the columns.
    const rows = state.format === "csv" ? lines - 1 : lines;
    return { rows, sizeBytes, sha256: hash.digest("hex") };
  }

  /** Of some that have ended, deletes those for which there is no place: failed ones take none of a file. */
  private async deleteBeyond(isOne: (state: ExportState) => boolean): Promise<void> {
    for (;;) {
      const ended = this.those(isOne);
      const next = nextToGo(ended, () => 1);
      if (next === undefined || ended.length <= this.options.kept) return;
      await this.deleteFile(next.state);
    }
  }

  /** Deletes files until one of so many bytes has room. */
  private async makeRoom(id: string, sizeBytes: number): Promise<void> {
    const countBytes = ({ state }: OwnedExport) =>
      state.id === id ? sizeBytes : (state.sizeBytes ?? 0);
    for (;;) {
      const all = this.those((state) => state.file !== null || state.id === id);
      const allBytes = all.reduce((sum, each) => sum + countBytes(each), 0);
      if (allBytes <= this.options.maxBytes) return;
      const files = all.filter(({ state }) => state.id !== id);
      // The new one counts as its client's, and is what there shall be room for.
      const next = nextToGo(all, countBytes, files) ?? nextToGo(files, countBytes);
      if (next === undefined) return;
      await this.deleteFile(next.state);
    }
  }

  private those(isOne: (state: ExportState) => boolean): OwnedExport[] {
    return [...this.exports.values()].filter(({ state }) => isOne(state));
  }

  /** @throws EXPORT_TOO_LARGE */
  private assertFits(sizeBytes: number): void {
    const { maxBytes } = this.options;
    if (sizeBytes <= maxBytes) return;
    const message =
      `it is longer than all files together may be (${maxBytes} bytes, api.exports-mib): ask for ` +
      "less of it, for example by fromBlock and toBlock";
    throw new IndexerError("EXPORT_TOO_LARGE", message);
  }

  private async deleteFile(state: ExportState): Promise<void> {
    this.exports.delete(state.id);
    await this.remove(this.path(state));
  }

  /** One that cannot be deleted ends neither the process nor what waits: a restart tries again. */
  private async remove(file: string): Promise<void> {
    try {
      await rm(file, { force: true });
    } catch (error) {
      this.options.log.warn({ reason: errorMessage(error) }, "an export's file was not deleted");
    }
  }

  private path({ id, format }: Pick<ExportState, "id" | "format">): string {
    return join(this.options.folder, `${id}.${format}`);
  }
}

function busy(): IndexerError {
  return new IndexerError("EXPORT_BUSY", "too many exports are waiting: try again later");
}

/**
 * Which one goes where there are too many: the oldest of the client that has most, and of clients that have
 * as much the oldest of all.
 * @param all in the order in which they were asked for
 * @param sizeOf what is counted
 * @param some of all: those that may go
 * @returns undefined where the client that has most has none of these
 */
function nextToGo(
  all: readonly OwnedExport[],
  sizeOf: (one: OwnedExport) => number,
  some = all,
): OwnedExport | undefined {
  const sums = new Map<string, number>();
  for (const one of all) sums.set(one.client, (sums.get(one.client) ?? 0) + sizeOf(one));
  const most = Math.max(...sums.values());
  return some.find(({ client }) => sums.get(client) === most);
}

/**
 * The index may be one that was made anew by now.
 * @throws EXPORT_BLOCK_GONE where it does not have the block at which the export is to end
 */
async function assertThere(sql: Sql, { toHeight, toHash }: ExportRequest): Promise<void> {
  if ((await blockHashAt(sql, toHeight)) === toHash) return;
  const message =
    `it was to end at block ${toHeight} (${toHash}), which is not in the index any more: it was made anew ` +
    "of a chain that has lost it; ask for it again";
  throw new IndexerError("EXPORT_BLOCK_GONE", message, { details: { height: toHeight } });
}

function failureOf(error: unknown): Pick<ExportState, "failure" | "failureCode"> {
  if (error instanceof IndexerError) {
    const failureCode = TELLING.find((code) => code === error.code);
    if (failureCode !== undefined) return { failure: error.message, failureCode };
  }
  if (errorCode(error) === STATEMENT_TIMEOUT) {
    const failure = "the database took too long for it: ask for less of it";
    return { failure, failureCode: "EXPORT_TOO_SLOW" };
  }
  const failure = "the rows could not be read or written; see the log";
  return { failure, failureCode: "EXPORT_FAILED" };
}

/** Opened with the first piece: a client that is gone by then leaves nothing open. */
async function* bytesOf(path: string): AsyncGenerator<Buffer, void> {
  yield* createReadStream(path);
}

const hex = (column: string) => `'0x' || encode(${column}, 'hex')`;
const asset = (column: string) =>
  `CASE WHEN ${column} = ''::bytea THEN 'TOKEN' ELSE ${hex(column)} END AS asset`;
const time = "to_char(b.time AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"') AS time";

/** Quote and delimiter that no row has: one JSON text a line, as it is. */
const JSON_LINES = String.raw`FORMAT csv, QUOTE E'\x01', DELIMITER E'\x02'`;

/** COPY takes no parameters: what is put into the text is hex digits and whole numbers only. */
function copyStatement(request: ExportRequest): string {
  const rows = SELECTS[request.kind](request);
  return request.format === "csv"
    ? `COPY (${rows}) TO STDOUT WITH (FORMAT csv, HEADER true)`
    : `COPY (SELECT row_to_json(r)::text FROM (${rows}) r) TO STDOUT WITH (${JSON_LINES})`;
}

/** A condition on bytes, where these were asked for. */
function only(text: string | undefined, condition: (bytes: string) => string): string {
  if (text === undefined) return "";
  if (!/^([0-9a-f]{40})?$/.test(text)) throw new IndexerError("INVALID_FIELD", "no address");
  return condition(`'\\x${text}'::bytea`);
}

function between(column: string, { fromHeight, toHeight }: ExportRequest): string {
  return `${column} BETWEEN ${Math.trunc(fromHeight)} AND ${Math.trunc(toHeight)}`;
}

const SELECTS: Readonly<Record<ExportRequest["kind"], (request: ExportRequest) => string>> = {
  transfers: (request) => `SELECT f.height || '-' || f.tx_index || '-' || f.seq AS id, f.height,
      ${time}, ${hex("t.hash")} AS tx_hash, f.kind, f.reason, ${asset("f.asset")},
      ${hex("f.sender")} AS "from", ${hex("f.recipient")} AS "to", f.amount::text AS amount,
      f.token_id::text AS token_id, f.log_index, f.trace_path
    FROM ${s}.transfer f JOIN ${s}.block b ON b.height = f.height
    LEFT JOIN ${s}.transaction t ON t.height = f.height AND t.tx_index = f.tx_index
    WHERE ${between("f.height", request)}
      ${only(request.addressHex, (one) => `AND ${one} IN (f.sender, f.recipient)`)}
      ${only(request.assetHex, (one) => `AND f.asset = ${one}`)}
    ORDER BY f.height, f.tx_index, f.seq`,
  transactions: (request) => `SELECT ${hex("t.hash")} AS hash, t.height, t.tx_index, ${time},
      t.status, ${hex("t.sender")} AS "from", ${hex("t.recipient")} AS "to",
      t.value::text AS value, t.nonce::text AS nonce, t.gas_used::text AS gas_used,
      t.gas_price::text AS gas_price, t.fee::text AS fee
    FROM ${s}.transaction t JOIN ${s}.block b USING (height)
    WHERE ${between("t.height", request)}
      ${only(
        request.addressHex,
        (one) => `AND EXISTS (SELECT 1 FROM ${s}.address_transaction a
          WHERE a.address = ${one} AND a.height = t.height AND a.tx_index = t.tx_index)`,
      )}
    ORDER BY t.height, t.tx_index`,
  balances: (request) => `SELECT ${hex("h.address")} AS address, ${asset("h.asset")},
      nullif(h.token_id, -1)::text AS token_id, h.amount::text AS amount, h.height AS changed_at
    FROM (SELECT DISTINCT ON (address, asset, token_id) * FROM ${s}.balance_history
          WHERE height <= ${Math.trunc(request.toHeight)}
          ${only(request.addressHex, (one) => `AND address = ${one}`)}
          ${only(request.assetHex, (one) => `AND asset = ${one}`)}
          ORDER BY address, asset, token_id, height DESC) h
    WHERE h.amount <> 0 AND ${isShownAsset(s, "h.asset")}
    ORDER BY h.address, h.asset, h.token_id`,
  swaps: (request) => `SELECT w.height || '-' || w.log_index AS id, w.height, ${time},
      ${hex("w.pair")} AS pair, ${hex("w.sender")} AS sender, ${hex("w.recipient")} AS "to",
      ${hex("w.origin")} AS origin, w.amount0_in::text AS amount0_in,
      w.amount1_in::text AS amount1_in, w.amount0_out::text AS amount0_out,
      w.amount1_out::text AS amount1_out, (p.is_confirmed IS TRUE)::text AS is_confirmed
    FROM ${s}.swap w JOIN ${s}.block b USING (height) LEFT JOIN ${s}.pair p ON p.address = w.pair
    WHERE ${between("w.height", request)}
      ${only(request.addressHex, (one) => `AND ${one} IN (w.sender, w.recipient, w.origin)`)}
    ORDER BY w.height, w.log_index`,
};
