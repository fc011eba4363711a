/**
 * What an audit asks of a node, over its public JSON-RPC: blocks as bytes, receipts as people read
 * them, the balance journal, proofs and code. Nothing here is believed for its own sake.
 */
import type { Address } from "../../chain/address.js";
import { type Hash32, type Height, type Hex, hexToBytes, toQuantity } from "../../chain/hex.js";
import type { Atoken } from "../../chain/units.js";
import {
  readAddress,
  readHash,
  readHex,
  readList,
  readObject,
  readOptional,
  readQuantity,
  readSafeQuantity,
} from "../../rpc-client/answer-fields.js";
import { blockReceipts } from "../../rpc-client/block-receipts.js";
import { isPruned, NodeFault, RpcError } from "../../rpc-client/errors.js";
import { receiptCalls } from "../../rpc-client/evm-client.js";
import { type JournaledBlock, parseJournaledBlock } from "../../rpc-client/journal-codec.js";
import { type JsonRpcClient, resultOf, type RpcOptions } from "../../rpc-client/json-rpc.js";
import { askOverRange } from "../../rpc-client/whole-range.js";
import { retry } from "../../runtime/process/task.js";
import { AuditError } from "./errors.js";

/** A log of a receipt. */
export interface AuditedLog {
  readonly address: Address;
  readonly topics: readonly Hash32[];
  readonly data: Hex;
}

/** A receipt as `eth_getBlockReceipts` tells it. */
export interface AuditedReceipt {
  readonly transactionHash: Hash32;
  readonly type: number;
  readonly from: Address;
  readonly to: Address | undefined;
  readonly contractAddress: Address | undefined;
  readonly status: number;
  readonly gasUsed: bigint;
  readonly cumulativeGasUsed: bigint;
  readonly effectiveGasPriceAtoken: Atoken;
  readonly logsBloom: Hex;
  readonly logs: readonly AuditedLog[];
}

/** An account, or slots of its storage, whose proof is wanted. */
export interface ProofQuery {
  readonly address: Address;
  readonly slots: readonly Hash32[];
}

/** Nodes of the tries on the way to what a query names, root first. */
export interface TrieProof {
  readonly account: readonly Uint8Array[];
  readonly storage: readonly (readonly Uint8Array[])[];
}

/** The node under audit. All methods throw RpcError and NodeFault, and AuditError where they say. */
export interface AuditNode {
  headHeight(): Promise<Height>;
  /** RLP of header, transactions and uncles. */
  rawBlock(height: Height): Promise<Uint8Array>;
  /** RLP of headers, in the order of the heights. */
  rawHeaders(heights: readonly Height[]): Promise<Uint8Array[]>;
  receipts(height: Height): Promise<AuditedReceipt[]>;
  /**
   * Blocks in which transactions were mined and did not fail; undefined for any other one.
   * @throws BAD_ANSWER while the node does not have block `upToHeight`
   */
  minedIn(hashes: readonly Hash32[], upToHeight: Height): Promise<(Height | undefined)[]>;
  journal(hash: Hash32): Promise<JournaledBlock>;
  /** Atoken of each address, unproven. @throws STATE_UNPROVEN as `proofs` does */
  balances(addresses: readonly Address[], height: Height): Promise<Atoken[]>;
  /** @throws STATE_UNPROVEN where the node no longer has the state of that height */
  proofs(queries: readonly ProofQuery[], height: Height): Promise<TrieProof[]>;
  code(address: Address, height: Height): Promise<Uint8Array>;
  /**
   * Accounts and slots that a block's transactions read, by their traces: what is worth asking for at once,
   * and nothing to believe. None where the node does not tell.
   */
  touched(height: Height): Promise<ProofQuery[]>;
}

/** Of questions to a node that has answered before: it may be busy, or starting again. */
const ASKED_AGAIN = { attempts: 5, minDelayMs: 1_000, maxDelayMs: 15_000 };

/** Time for the traces of a block: they save time, or are not worth any. */
const TRACES_TIMEOUT_MS = 30_000;

/** Accounts and slots of a block's traces that are asked for at once; more than full blocks read. */
const MAX_TOUCHED = 100_000;

/** The node behind a JSON-RPC client. */
export function createAuditNode(rpc: JsonRpcClient, signal: AbortSignal): AuditNode {
  const questions = createQuestions(rpc, signal);
  return { ...blockReads(rpc, questions, signal), ...stateReads(rpc, questions, signal) };
}

/** Questions to the node, each asked again where it has answered before. */
interface Questions {
  /** Any request; `method` is named where it is refused. */
  readonly asked: <T>(method: string, request: () => Promise<T>) => Promise<T>;
  readonly ask: (method: string, params: readonly unknown[]) => Promise<unknown>;
  /** Of one method, in one batch. */
  readonly askAll: (method: string, params: readonly (readonly unknown[])[]) => Promise<unknown[]>;
}

function createQuestions(rpc: JsonRpcClient, signal: AbortSignal): Questions {
  let hasAnswered = false;
  const askOnce = async <T>(method: string, request: () => Promise<T>) => {
    const answer = await asking(method, request);
    hasAnswered = true;
    return answer;
  };
  const asked = <T>(method: string, request: () => Promise<T>) =>
    retry(() => askOnce(method, request), {
      ...ASKED_AGAIN,
      signal,
      isRetriable: (error) => hasAnswered && error instanceof NodeFault && error.retriable,
    });
  return {
    asked,
    ask: (method, params) => asked(method, () => rpc.request(method, params, { signal })),
    askAll: (method, params) =>
      asked(method, async () => {
        const calls = params.map((each) => ({ method, params: each }));
        return (await rpc.batch(calls, { signal })).map((outcome) => resultOf(outcome));
      }),
  };
}

function bytesOf(value: unknown, name: string): Uint8Array {
  return hexToBytes(readHex(value, name));
}

type BlockReads = "headHeight" | "rawBlock" | "rawHeaders" | "receipts" | "minedIn" | "journal";

function blockReads(
  rpc: JsonRpcClient,
  { asked, ask, askAll }: Questions,
  signal: AbortSignal,
): Pick<AuditNode, BlockReads> {
  return {
    headHeight: async () => readSafeQuantity(await ask("eth_blockNumber", []), "block number"),
    rawBlock: async (height) =>
      bytesOf(await ask("debug_getRawBlock", [toQuantity(height)]), "raw block"),
    async rawHeaders(heights) {
      const answers = await askAll(
        "debug_getRawHeader",
        heights.map((height) => [toQuantity(height)]),
      );
      return answers.map((answer) => bytesOf(answer, "raw header"));
    },
    async receipts(height) {
      return asked("eth_getBlockReceipts", () =>
        blockReceipts(rpc, height, parseReceipt, { signal }),
      );
    },
    async minedIn(hashes, upToHeight) {
      const answers = await asked("eth_getTransactionReceipt", async () => {
        const outcomes = await askOverRange(rpc, upToHeight, receiptCalls(hashes), { signal });
        return outcomes.map((outcome) => resultOf(outcome));
      });
      return answers.map((answer) => readOptional(answer, "receipt", successHeight));
    },
    journal: async (hash) => parseJournaledBlock(await ask("causeway_getBlockJournal", [hash])),
  };
}

function stateReads(
  rpc: JsonRpcClient,
  { ask, askAll }: Questions,
  signal: AbortSignal,
): Omit<AuditNode, BlockReads> {
  return {
    async balances(addresses, height) {
      const at = toQuantity(height);
      const answers = await askAll(
        "eth_getBalance",
        addresses.map((address) => [address, at]),
      );
      return answers.map((answer) => readQuantity(answer, "balance"));
    },
    async proofs(queries, height) {
      const at = toQuantity(height);
      const params = queries.map(({ address, slots }) => [address, slots, at]);
      return (await askAll("eth_getProof", params)).map(parseProof);
    },
    code: async (address, height) =>
      bytesOf(await ask("eth_getCode", [address, toQuantity(height)]), "code"),
    async touched(height) {
      const config = { tracer: "prestateTracer", tracerConfig: { disableCode: true } };
      try {
        const method = "debug_traceBlockByNumber";
        const options: RpcOptions = { signal, timeoutMs: TRACES_TIMEOUT_MS };
        return parseTouched(await rpc.request(method, [toQuantity(height), config], options));
      } catch {
        signal.throwIfAborted();
        return [];
      }
    },
  };
}

/** What a node refuses of a state that it no longer has. */
const STATE_METHODS: ReadonlySet<string> = new Set(["eth_getProof", "eth_getBalance"]);

/** A refusal names the method: a pruned state and a method that is switched off look like that. */
async function asking<T>(method: string, request: () => Promise<T>): Promise<T> {
  try {
    return await request();
  } catch (cause) {
    if (!(cause instanceof RpcError)) throw cause;
    const isOfState = STATE_METHODS.has(method);
    const code = isOfState ? "STATE_UNPROVEN" : "NODE_REFUSED";
    const advice = isOfState && isPruned(cause) ? `: ${UNPROVEN}` : "";
    throw new AuditError(code, `The node refuses ${cause.message}${advice}.`, { cause });
  }
}

/** What to do where a node has let the states go that an audit needs. */
const UNPROVEN =
  'it keeps proofs of its newest blocks alone, unless its app.toml says pruning = "nothing"; take a later ' +
  "block, or a node that has them";

function successHeight(value: unknown): Height | undefined {
  const receipt = readObject(value, "receipt");
  const isSuccess = readSafeQuantity(receipt["status"], "status") === 1;
  return isSuccess ? readSafeQuantity(receipt["blockNumber"], "blockNumber") : undefined;
}

function parseReceipt(value: unknown): AuditedReceipt {
  const receipt = readObject(value, "receipt");
  return {
    transactionHash: readHash(receipt["transactionHash"], "transactionHash"),
    type: readSafeQuantity(receipt["type"], "type"),
    from: readAddress(receipt["from"], "from"),
    to: readOptional(receipt["to"], "to", readAddress),
    contractAddress: readOptional(receipt["contractAddress"], "contractAddress", readAddress),
    status: readSafeQuantity(receipt["status"], "status"),
    gasUsed: readQuantity(receipt["gasUsed"], "gasUsed"),
    cumulativeGasUsed: readQuantity(receipt["cumulativeGasUsed"], "cumulativeGasUsed"),
    effectiveGasPriceAtoken: readQuantity(receipt["effectiveGasPrice"], "effectiveGasPrice"),
    logsBloom: readHex(receipt["logsBloom"], "logsBloom"),
    logs: readList(receipt["logs"], "logs").map((entry) => {
      const log = readObject(entry, "log");
      return {
        address: readAddress(log["address"], "address"),
        topics: readList(log["topics"], "topics").map((topic) => readHash(topic, "topic")),
        data: readHex(log["data"], "data"),
      };
    }),
  };
}

/** Of a block's prestate traces, as far as they are not too many. */
function parseTouched(value: unknown): ProofQuery[] {
  const slotsOf = new Map<Address, Set<Hash32>>();
  let count = 0;
  for (const { address, slot } of touchedKeys(value)) {
    const slots = slotsOf.get(address) ?? new Set();
    if (slot === undefined ? slotsOf.has(address) : slots.has(slot)) continue;
    if (++count > MAX_TOUCHED) break;
    slotsOf.set(address, slots);
    if (slot !== undefined) slots.add(slot);
  }
  return [...slotsOf].map(([address, slots]) => ({ address, slots: [...slots] }));
}

/** Each account, and behind it its slots; what several transactions read comes again. */
function* touchedKeys(traces: unknown) {
  for (const entry of readList(traces, "traces")) {
    const before = readObject(readObject(entry, "trace")["result"], "result");
    for (const [key, account] of Object.entries(before)) {
      const address = readAddress(key, "account");
      yield { address, slot: undefined };
      const storage = readObject(account, "account")["storage"] ?? {};
      for (const slot of Object.keys(readObject(storage, "storage"))) {
        yield { address, slot: readHash(slot, "slot") };
      }
    }
  }
}

function parseProof(value: unknown): TrieProof {
  const proof = readObject(value, "proof");
  const nodes = (list: unknown, name: string) =>
    readList(list, name).map((node) => hexToBytes(readHex(node, name)));
  return {
    account: nodes(proof["accountProof"], "accountProof"),
    storage: readList(proof["storageProof"], "storageProof").map((entry) =>
      nodes(readObject(entry, "storageProof")["proof"], "storageProof"),
    ),
  };
}
