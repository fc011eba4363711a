/** `cosmos.tx.v1beta1.Service`: transactions by hash, event and block; simulated and submitted. */
import { dataIndexOf } from "../../../../chain/cosmos/cosmos-result.js";
import { MAX_SHOWN_MESSAGES } from "../../../../chain/cosmos/cosmos-transaction.js";
import { decodeStdTx, encodeStdTx } from "../../../../chain/cosmos/std-tx.js";
import { decodeMessage, decodeRequest, encodeMessage } from "../../../../chain/protobuf/codec.js";
import { assertFewMessages } from "../../../../chain/protobuf/message-count.js";
import {
  EncodedMessage,
  type MessageReader,
  type ProtoMessage,
} from "../../../../chain/protobuf/values.js";
import { type Height, parseHash32 } from "../../../../chain/hex.js";
import { breathe } from "../../../../runtime/process/main-thread.js";
import { type Asker, longWork, readInTurn } from "../../../../runtime/turns/resting-lane.js";
import type { SdkTransactionPlace, SdkTransactionRecord } from "../../../view/sdk-transactions.js";
import { isOversized } from "../../comet/submission.js";
import { hasTooManyValues } from "../../json-text.js";
import { decidedBlock, needHeight } from "../decided-block.js";
import { invalidArgument, notFound, QueryFault } from "../errors.js";
import { MAX_PAGE_BYTES, pageLimit, pageRequest } from "../paging.js";
import type { QueryHandlers } from "../registry.js";
import type { QuerySources } from "../sources.js";
import { eventMessages, submissionResponse, txOf, txResponse } from "../tx-response.js";

const SERVICE = "/cosmos.tx.v1beta1.Service";
const TX = "cosmos.tx.v1beta1.Tx";

/** Modes of a broadcast that are one of SYNC here: none, SYNC and ASYNC. */
const SUBMIT_MODES: readonly number[] = [0, 2, 3];

/** `BROADCAST_MODE_BLOCK`, which the SDK gave up with 0.47. */
const BLOCK_MODE = 1;

/** Orders of `GetTxsEvent`. */
const ORDER_DESCENDING = 2;

/** The queries of this service. */
export function txQueries(sources: QuerySources): QueryHandlers {
  return { ...searchQueries(sources), ...sendQueries(sources), ...codecQueries(sources) };
}

function searchQueries(sources: QuerySources): QueryHandlers {
  return {
    [`${SERVICE}/GetTx`]: async (request, context) => {
      const record = await byEitherHash(sources, request.text("hash"), context);
      return { tx: txOf(record), tx_response: txResponse(record) };
    },
    [`${SERVICE}/GetTxsEvent`]: (request, context) => search(sources, request, context),
    [`${SERVICE}/GetBlockWithTxs`]: (request, { signal }) => blockWithTxs(sources, request, signal),
  };
}

function sendQueries({ types, transactions }: QuerySources): QueryHandlers {
  const type = types.message(TX);
  const messageData = types.message("cosmos.base.abci.v1beta1.TxMsgData");
  return {
    [`${SERVICE}/BroadcastTx`]: async (request) => {
      const bytes = bytesOf(request);
      const mode = request.number("mode");
      if (!SUBMIT_MODES.includes(mode)) {
        // Whoever asks for that of a block would take the answer for one.
        const name = mode === BLOCK_MODE ? "BROADCAST_MODE_BLOCK" : `${mode}`;
        throw invalidArgument(`unsupported return type ${name}; supported types: sync, async`);
      }
      const submission = await transactions.submit(bytes);
      return { tx_response: submissionResponse(submission) };
    },
    [`${SERVICE}/Simulate`]: async (request, context) => {
      const bytes = request.bytes("tx_bytes");
      const isOld = bytes.length === 0 && request.has("tx");
      const encoded = () => encodeMessage(type, request.submessage("tx").value);
      const { signal, client } = context;
      const tx = isOld ? await longWork.run(signal, encoded, client) : bytesOf(request);
      const result = await transactions.simulate(tx, context);
      if (result.code !== 0) {
        throw new QueryFault("UNKNOWN", `${result.log} with gas used: '${result.gasUsed}'`);
      }
      return {
        gas_info: { gas_wanted: result.gasWanted, gas_used: result.gasUsed },
        result: {
          data: result.data,
          log: result.log,
          events: eventMessages(result),
          // Where clients of SDK 0.46 and later look for it.
          msg_responses: decodeMessage(messageData, result.data)["msg_responses"] ?? [],
        },
      };
    },
  };
}

/** Between the forms of a transaction: bytes, JSON, and the older JSON of Amino. */
function codecQueries({ types }: QuerySources): QueryHandlers {
  const type = types.message(TX);
  return {
    [`${SERVICE}/TxDecode`]: async (request, context) => {
      const bytes = bytesOf(request);
      if (isOversized(bytes)) throw invalidArgument("no transaction has so many bytes");
      await readInTurn(bytes.length, context, () => {
        decodeRequest(type, bytes);
        assertFewMessages(types, type, bytes, MAX_SHOWN_MESSAGES);
      });
      return { tx: new EncodedMessage(bytes) };
    },
    [`${SERVICE}/TxDecodeAmino`]: async (request, context) => {
      const bytes = request.bytes("amino_binary");
      if (bytes.length === 0) throw invalidArgument("invalid empty tx bytes");
      return { amino_json: await readInTurn(bytes.length, context, () => decodeStdTx(bytes)) };
    },
    [`${SERVICE}/TxEncodeAmino`]: async (request, context) => {
      const json = request.text("amino_json");
      if (json === "") throw invalidArgument("invalid empty tx json");
      if (hasTooManyValues(Buffer.from(json))) throw invalidArgument("the tx json is too large");
      return { amino_binary: await readInTurn(json.length, context, () => encodeStdTx(json)) };
    },
    [`${SERVICE}/TxEncode`]: async (request, { signal, client }) => {
      if (!request.has("tx")) throw invalidArgument("invalid empty tx");
      const { value } = request.submessage("tx");
      // Its size is that of its bytes, which are to be made.
      return { tx_bytes: await longWork.run(signal, () => encodeMessage(type, value), client) };
    },
  };
}

function bytesOf(request: MessageReader): Uint8Array {
  const bytes = request.bytes("tx_bytes");
  if (bytes.length === 0) throw invalidArgument("invalid empty tx");
  return bytes;
}

/** By the hash of the SDK Tx, or by that of the EVM transaction in it; 0x in front or not. */
async function byEitherHash(
  { chain, transactions }: QuerySources,
  text: string,
  asker: Asker,
): Promise<SdkTransactionRecord> {
  const digits = text.replace(/^0x/i, "");
  if (text === "") throw invalidArgument("tx hash cannot be empty");
  if (!/^[0-9a-fA-F]{64}$/.test(digits)) {
    throw invalidArgument(`a transaction's hash is 64 hex digits, not "${text.slice(0, 100)}"`);
  }
  const hash = parseHash32(`0x${digits}`);
  const record = await transactions.byHash(hash, asker);
  if (record !== undefined) return record;
  const place = chain.view.locate(hash);
  const evm =
    place === undefined ? undefined : await transactions.at(placeInData(chain, place), asker);
  if (evm === undefined) throw notFound(`tx not found: ${digits.toUpperCase()}`);
  return evm;
}

/** Where a transaction of the EVM's index stands among all of its block. */
function placeInData(
  { view }: QuerySources["chain"],
  { height, index }: SdkTransactionPlace,
): SdkTransactionPlace {
  const places = view.outline(height)?.cosmosPlaces;
  if (places === undefined) throw new RangeError(`block ${height} has no outline`);
  return { height, index: dataIndexOf(index, places) };
}

async function search(sources: QuerySources, request: MessageReader, asker: Asker) {
  const { transactions } = sources;
  const conditions = [...request.texts("events"), request.text("query")].filter(
    (text) => text.trim() !== "",
  );
  if (conditions.length === 0) {
    throw invalidArgument("must declare at least one event to search: events= or query=");
  }
  const found = await transactions.search(conditions.join(" AND "), asker);
  const ordered = request.number("order_by") === ORDER_DESCENDING ? found.toReversed() : found;
  const { start, limit } = window(request);
  const txs: EncodedMessage[] = [];
  const tx_responses: ProtoMessage[] = [];
  let sizeBytes = 0;
  for (const place of ordered.slice(start, start + limit)) {
    const record = await transactions.at(place, asker);
    if (record === undefined) throw new RangeError("a transaction that was found is not there");
    sizeBytes += sizeOf(record);
    if (sizeBytes > MAX_PAGE_BYTES && txs.length > 0) {
      throw new QueryFault("RESOURCE_EXHAUSTED", "the transactions are large: use a smaller limit");
    }
    txs.push(txOf(record));
    tx_responses.push(txResponse(record));
    await breathe(asker.signal);
  }
  const total = BigInt(found.length);
  return {
    txs,
    tx_responses,
    // Where clients of SDK 0.46 look for it.
    pagination: { total },
    total,
  };
}

/** A few hundred bytes of a transaction may have megabytes of logs. */
function sizeOf({ bytes, result: { events } }: SdkTransactionRecord): number {
  let sizeBytes = bytes.length;
  for (const { attributes } of events) {
    for (const { key, value } of attributes) sizeBytes += key.length + value.length;
  }
  return sizeBytes;
}

/**
 * `page` (from 1) and `limit`, or the older `pagination.offset` and `pagination.limit`. Pages are counted by
 * what one has, as CometBFT counts them: the second one goes on where the first one ended.
 */
function window(request: MessageReader) {
  const old = request.submessage("pagination");
  const page = request.bigint("page");
  const offset = page > 0n ? 0n : old.bigint("offset");
  const limit = pageLimit(request.bigint("limit") || old.bigint("limit"), offset);
  const start = page > 0n ? (page - 1n) * BigInt(limit) : offset;
  return { start: Number(start < 2n ** 52n ? start : 2n ** 52n), limit };
}

async function blockWithTxs(
  sources: QuerySources,
  request: MessageReader,
  signal: AbortSignal,
): Promise<ProtoMessage> {
  const height: Height = needHeight(sources, request.bigint("height"));
  const { block_id, block, txs } = await decidedBlock(sources, height, signal);
  const { offset, limit } = pageRequest(request);
  if (txs.length > 0 && offset >= txs.length) {
    throw invalidArgument(`out of range: cannot paginate ${txs.length} txs with offset ${offset}`);
  }
  return {
    txs: txs.slice(offset, offset + limit).map((bytes) => new EncodedMessage(bytes)),
    block_id,
    block,
    pagination: { total: BigInt(txs.length) },
  };
}
