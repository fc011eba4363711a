/** Traces of mined transactions and calls, and raw encodings; nothing that writes or profiles. */
import { type BlockOutline, type BlockTransaction, encodeHeader } from "../../../../chain/block.js";
import { encodedRlpItems } from "../../../../chain/encoding/rlp.js";
import { ChainError } from "../../../../chain/errors.js";
import { keccak256Hex } from "../../../../chain/hashes.js";
import { bytesToHex, type Hash32, type Height } from "../../../../chain/hex.js";
import type { ChainView } from "../../../view/chain-view.js";
import { encodeRawBlock } from "../../../view/evm-json.js";
import { breathe } from "../../../../runtime/process/main-thread.js";
import type { CallWorkers, TraceKind } from "../../../execution/calls/call-port.js";
import type { TransactionPool } from "../../../mempool/pool-port.js";
import { callRequestParser } from "../arguments/call.js";
import { responseTooLarge, RpcFault } from "../errors.js";
import { LARGE_BYTES } from "../large-lane.js";
import { type CallContext, JsonPieces, type MethodEntries, method, RawJson } from "../method.js";
import {
  optionalField,
  ParamError,
  parseBlockNumberOrTag,
  parseBlockRef,
  parseBytes,
  parseHashParam,
} from "../params.js";
import type { EvmApiOptions } from "../options.js";
import { parseBlockOverrides, parseStateOverrides } from "../arguments/overrides.js";
import { findBlock, stateHeight } from "../reads.js";
import { refusedBlockJson } from "../json/refused-block.js";
import { DEFAULT_TRACE, parseTraceConfig, parseTraceOptions } from "../arguments/trace.js";
import { transactionOf } from "./transaction-methods.js";

/** What the debug methods read. */
export interface DebugMethodPorts {
  readonly view: ChainView;
  readonly calls: CallWorkers;
  readonly pool: TransactionPool;
  readonly chainId: bigint;
  readonly refusedBlocks: EvmApiOptions["refusedBlocks"];
  readonly limits: Pick<EvmApiOptions["limits"], "responseBytes">;
}

/** Read-only debug namespace. */
export function debugMethods(ports: DebugMethodPorts): MethodEntries {
  const badBlocks = () => `[${ports.refusedBlocks().map(refusedBlockJson).join(",")}]`;
  return [
    ...traceMethods(ports),
    ...rawMethods(ports),
    method("debug_getBadBlocks", 0, () => new RawJson(badBlocks())),
  ];
}

/** Header, transactions, uncles. */
const BLOCK_ITEMS = 3;

/** A block that a client has named, and how go-ethereum writes its name. */
interface NamedBlock {
  readonly height: Height | undefined;
  readonly name: string;
}

function traceMethods({ view, calls, chainId }: DebugMethodPorts): MethodEntries {
  const parseCall = callRequestParser(chainId);
  const traceBlock = async (
    { height, name }: NamedBlock,
    kind: TraceKind,
    { signal, client }: CallContext,
  ): Promise<RawJson> => {
    if (height === undefined) throw new RpcFault("SERVER_ERROR", `block ${name} not found`);
    if (height === 0) throw new RpcFault("SERVER_ERROR", "genesis is not traceable");
    const traces = await calls.traceBlock(height, undefined, kind, { signal, client });
    const pieces = traces.flatMap(({ transactionHash, json }, index) => {
      const lead = index === 0 ? "[" : "},";
      return [Buffer.from(`${lead}{"txHash":"${transactionHash}","result":`), json];
    });
    return new RawJson(Buffer.concat([...pieces, Buffer.from(pieces.length === 0 ? "[]" : "}]")]));
  };
  return [
    method("debug_traceTransaction", 2, async (params, { signal, client }) => {
      const location = view.locate(params.required(0, parseHashParam));
      const kind = params.optional(1, parseTraceConfig) ?? DEFAULT_TRACE;
      if (location === undefined) throw new RpcFault("SERVER_ERROR", "transaction not found");
      const { height, index } = location;
      const [trace] = await calls.traceBlock(height, index, kind, { signal, client });
      if (trace === undefined) throw new RpcFault("SERVER_ERROR", "transaction not found");
      return RawJson.of(trace.json);
    }),
    method("debug_traceBlockByNumber", 2, (params, context) => {
      const ref = params.required(0, parseBlockNumberOrTag);
      const kind = params.optional(1, parseTraceConfig) ?? DEFAULT_TRACE;
      const name = ref.kind === "height" ? `#${ref.height}` : ref.kind;
      return traceBlock({ height: findBlock(view, ref), name }, kind, context);
    }),
    method("debug_traceBlockByHash", 2, (params, context) => {
      const hash = params.required(0, parseHashParam);
      const kind = params.optional(1, parseTraceConfig) ?? DEFAULT_TRACE;
      return traceBlock({ height: view.heightOfHash(hash), name: hash }, kind, context);
    }),
    method("debug_traceBlock", 2, (params, context) => {
      const hash = hashOfRawBlock(params.required(0, parseBytes));
      const kind = params.optional(1, parseTraceConfig) ?? DEFAULT_TRACE;
      return traceBlock({ height: view.heightOfHash(hash), name: hash }, kind, context);
    }),
    method("debug_traceCall", 3, async (params, { signal, client }) => {
      const request = params.required(0, parseCall);
      const height = stateHeight(view, params.optional(1, parseBlockRef));
      const kind = params.optional(2, parseTraceConfig) ?? DEFAULT_TRACE;
      params.optional(2, refuseTransactionIndex);
      const overrides = params.optional(2, (value) => ({
        overrides: optionalField(parseTraceOptions(value), "stateOverrides", parseStateOverrides),
        blockOverrides: optionalField(
          parseTraceOptions(value),
          "blockOverrides",
          parseBlockOverrides,
        ),
      }));
      const options = { ...overrides, signal, client };
      return RawJson.of(await calls.traceCall(request, height, kind, options));
    }),
  ];
}

/**
 * Hash of the header in a block as `debug_getRawBlock` gives it. What else is in it is not looked at: the
 * header names its transactions, and only blocks of this chain are traced.
 * @throws SERVER_ERROR for anything but a list of header, transactions and uncles
 */
function hashOfRawBlock(bytes: Uint8Array): Hash32 {
  const undecodable = (why: string) =>
    new RpcFault("SERVER_ERROR", `could not decode block: ${why}`);
  let items: Uint8Array[];
  try {
    items = encodedRlpItems(bytes);
  } catch (error) {
    throw error instanceof ChainError ? undecodable(error.message) : error;
  }
  const [header] = items;
  if (header === undefined || items.length !== BLOCK_ITEMS) {
    throw undecodable("expected header, transactions and uncles");
  }
  return keccak256Hex(header);
}

/** Not ignored: the state within a block is another one than that behind it. */
function refuseTransactionIndex(value: unknown): void {
  if (optionalField(parseTraceOptions(value), "txIndex", (index) => index) === undefined) return;
  throw new ParamError("txIndex is not supported: calls are traced on the state behind the block");
}

/** Digits of a byte. */
const HEX_LENGTH = 2;

function rawMethods({ view, pool, limits }: DebugMethodPorts): MethodEntries {
  const existing = (height: Height | undefined): BlockOutline => {
    const outline = height === undefined ? undefined : view.outline(height);
    if (outline === undefined) throw new RpcFault("SERVER_ERROR", "block not found");
    return outline;
  };
  return [
    method("debug_getRawHeader", 1, (params) => {
      const { header } = existing(findBlock(view, params.required(0, parseBlockRef)));
      return bytesToHex(encodeHeader(header));
    }),
    method("debug_getRawBlock", 1, async (params, context) => {
      const { header } = existing(findBlock(view, params.required(0, parseBlockRef)));
      const transactions: BlockTransaction[] = [];
      let sizeBytes = 0;
      for (const page of view.pages(header.height)) {
        const mined = page.transactions();
        transactions.push(...mined);
        for (const { tx } of mined) sizeBytes += HEX_LENGTH * tx.raw.length;
        if (sizeBytes > LARGE_BYTES) await context.becameLarge();
        await breathe(context.signal);
      }
      return bytesToHex(encodeRawBlock({ header, transactions }));
    }),
    method("debug_getRawReceipts", 1, async (params, context) => {
      const { header } = existing(findBlock(view, params.required(0, parseBlockRef)));
      const answer = new JsonPieces();
      let lead = "[";
      for (const page of view.pages(header.height)) {
        for (const raw of page.rawReceipts()) {
          answer.add(`${lead}"${bytesToHex(raw)}"`);
          lead = ",";
          if (answer.sizeBytes > limits.responseBytes) throw responseTooLarge();
          if (answer.sizeBytes > LARGE_BYTES) await context.becameLarge();
          await breathe(context.signal);
        }
      }
      answer.add(lead === "[" ? "[]" : "]");
      return answer;
    }),
    method("debug_getRawTransaction", 1, (params) => {
      const found = transactionOf({ view, pool }, params.required(0, parseHashParam));
      return found === undefined ? "0x" : bytesToHex(found.tx.raw);
    }),
  ];
}
