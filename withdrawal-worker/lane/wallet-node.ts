/** The node as the worker needs it: consistent views, and answers that carry their height. */
import type { Address } from "../../chain/address.js";
import { present } from "../../chain/errors.js";
import { type Hash32, type Height, type Hex, toQuantity } from "../../chain/hex.js";
import { decodeUnits } from "../../chain/evm/erc20.js";
import type { Atoken } from "../../chain/units.js";
import { calldataOf, type PaymentTerms } from "../../ledger/requests/payment-terms.js";
import type { ChainIdentity } from "../../ledger/database.js";
import { readHex, readQuantity, readSafeQuantity } from "../../rpc-client/answer-fields.js";
import { badAnswer, isOfOneQuestion, NodeFault } from "../../rpc-client/errors.js";
import {
  balanceCall,
  createEvmClient,
  encodeEstimate,
  type NodeBlockHeader,
  parseHeader,
  parseOldestReceipts,
  parseSyncing,
  type SendOutcome,
} from "../../rpc-client/evm-client.js";
import type { KnownAccounts } from "../../rpc-client/chain-accounts.js";
import { headerCall, type StateAt } from "../../rpc-client/at.js";
import {
  type JsonRpcClient,
  resultOf,
  type RpcCall,
  type RpcOptions,
  type RpcOutcome,
} from "../../rpc-client/json-rpc.js";
import { limitedSignal } from "../../runtime/process/task.js";
import { WorkerError } from "../errors.js";
import { askHaveCode, type CodeAnswer } from "./have-code.js";
import { ReceiptReader, type ReceiptsAtHeight } from "./receipts.js";
import type { KeptBlocks } from "../kept-blocks.js";
import { type EstimateMeaning, meaningOfEstimate } from "../withdrawal-state.js";

/** The wallet on the chain, all of one moment except the pool's nonce. */
export interface WalletView {
  readonly height: Height;
  /** Of the block of that height: what else is asked of this state names it by this. */
  readonly blockHash: Hash32;
  readonly balanceAtoken: Atoken;
  /** Number of the wallet's transactions mined at `height`. */
  readonly nonce: bigint;
  /** Next nonce counting what is executable in the pool; read after the rest. */
  readonly pendingNonce: bigint;
  /** The node's suggestion, atoken per gas. */
  readonly suggestedPriceAtoken: Atoken;
  /** Most gas that the node takes of one transaction; undefined where it names no limit. */
  readonly maxTransactionGas: bigint | undefined;
}

/** A payment to estimate. */
export interface PaymentEstimate extends PaymentTerms {
  /** Price that it will be signed with: code can see it, and may do otherwise at another one. */
  readonly gasPriceAtoken: Atoken;
  /** An estimate above it is answered as a refusal by the destination. */
  readonly gasMax: bigint;
}

/** A question about the state that a view shows: a node that is behind would answer by an older one. */
interface AtView extends RpcOptions {
  readonly at: Height;
}

/** Calls throw NodeFault or WorkerError when nothing the node says can be used. */
export interface WalletNode {
  /** @throws WRONG_NODE, NODE_BEHIND */
  view(wallet: Address, options: RpcOptions): Promise<WalletView>;
  /**
   * In the order of the addresses, whether a payment to them runs code; undefined where the node does not
   * have the block, `too-much` where it has no room for the answer.
   */
  haveCode(addresses: readonly Address[], options: AtView): Promise<CodeAnswer[]>;
  /**
   * Meanings in the order of the payments; undefined for those that there was no time to ask for.
   * A destination that burns gas costs its own answer, never those of others. `unknown` is also what a node
   * says that does not have the block.
   * @param options.perCall estimates asked for at once; a few where code may burn gas
   */
  estimate(
    wallet: Address,
    payments: readonly PaymentEstimate[],
    options: AtView & { readonly perCall?: number },
  ): Promise<(EstimateMeaning | undefined)[]>;
  /**
   * The wallet's balances of tokens after a block, in the order of their contracts; undefined where a
   * contract does not tell.
   */
  tokenBalances(
    wallet: Address,
    tokens: readonly Address[],
    at: StateAt,
    options: RpcOptions,
  ): Promise<(bigint | undefined)[]>;
  send(raws: readonly Hex[], options: RpcOptions): Promise<SendOutcome[]>;
  /** Receipts, with the lowest height of the exchanges that gave them, and what was not told. */
  receipts(hashes: readonly Hash32[], options: RpcOptions): Promise<ReceiptsAtHeight>;
  headers(
    heights: readonly Height[],
    options: RpcOptions,
  ): Promise<(NodeBlockHeader | undefined)[]>;
  /** How far back it has receipts. Asked behind a receipt that is missing. @throws WRONG_NODE */
  keptBlocks(options: RpcOptions): Promise<KeptBlocks>;
  /** Refuses a node of another chain than the ledger's. @throws WRONG_NODE */
  assertChain(options: RpcOptions): Promise<void>;
}

/** What a second node is asked: it says whether it has seen the same. */
export type SecondNode = Pick<WalletNode, "receipts" | "headers" | "assertChain">;

/** Estimates asked for at once: with the gas cap even the dearest fit the client's time-out. */
const ESTIMATES_PER_CALL = 8;

/**
 * After this no further part is asked in a round, and an estimate that is asked for by itself is given
 * up: the next payments must not wait for it.
 */
const ESTIMATE_BUDGET_MS = 2_000;

/** Asks in parts; the payments of a part that cannot be answered together are asked one by one. */
async function estimateInParts(
  rpc: JsonRpcClient,
  calls: readonly RpcCall[],
  {
    signal,
    perCall,
    budgetMs,
  }: { readonly signal: AbortSignal; readonly perCall: number; readonly budgetMs: number },
): Promise<(EstimateMeaning | undefined)[]> {
  const deadlineMs = performance.now() + budgetMs;
  const meanings: (EstimateMeaning | undefined)[] = [];
  while (meanings.length < calls.length && performance.now() < deadlineMs) {
    const part = calls.slice(meanings.length, meanings.length + perCall);
    const answers = await askEstimates(rpc, part, signal);
    if (!isUnanswerable(answers)) {
      meanings.push(...answers);
      continue;
    }
    // At least the first one, so that every round ends with an answer about somebody.
    for (const [index, call] of part.entries()) {
      const hasTime = index === 0 || performance.now() < deadlineMs;
      meanings.push(hasTime ? await askOne(rpc, call, { signal, budgetMs }) : undefined);
    }
  }
  return meanings;
}

async function askOne(
  rpc: JsonRpcClient,
  call: RpcCall,
  { signal, budgetMs }: { readonly signal: AbortSignal; readonly budgetMs: number },
): Promise<EstimateMeaning> {
  const limited = limitedSignal([signal], budgetMs);
  let answers: EstimateMeaning[] | Unanswerable = "NODE_TIMEOUT";
  try {
    answers = await askEstimates(rpc, [call], limited);
  } catch (error) {
    signal.throwIfAborted();
    if (!limited.aborted) throw error;
  }
  if (isUnanswerable(answers)) return { kind: "unknown", reason: UNANSWERABLE[answers] };
  return present(answers[0], "an answer to each call");
}

/**
 * Faults of an exchange for which the destinations are to blame, as they choose how long their code takes and
 * what it reverts with.
 */
const UNANSWERABLE = {
  NODE_TIMEOUT: "the node gave no answer in time",
  ANSWER_TOO_LARGE: "the node's answer is too large",
} as const;

type Unanswerable = keyof typeof UNANSWERABLE;

function isUnanswerable(value: unknown): value is Unanswerable {
  return Object.keys(UNANSWERABLE).some((code) => code === value);
}

/** One exchange; the fault when its calls have no answer together. */
async function askEstimates(
  rpc: JsonRpcClient,
  calls: readonly RpcCall[],
  signal: AbortSignal,
): Promise<EstimateMeaning[] | Unanswerable> {
  try {
    const outcomes = await rpc.batch(calls, { signal });
    return outcomes.map((outcome) =>
      meaningOfEstimate(
        outcome.ok ? { ok: true, gas: readQuantity(outcome.result, "gas") } : outcome,
      ),
    );
  } catch (error) {
    if (!(error instanceof NodeFault) || !isUnanswerable(error.code)) throw error;
    return error.code;
  }
}

/** Options of `createWalletNode`. */
export interface WalletNodeOptions {
  /** Time for the estimates of one call, and again for one that is asked for by itself. */
  readonly estimateBudgetMs?: number;
  /** Time for the receipts of one call. */
  readonly receiptsBudgetMs?: number;
  /** Learned of the node before it is looked at for the first time: whom nobody pays on this chain. */
  readonly chainAccounts?: Pick<KnownAccounts, "ask">;
}

/** The worker's view of one node of the chain of this identity. */
export function createWalletNode(
  rpc: JsonRpcClient,
  identity: ChainIdentity,
  {
    estimateBudgetMs: budgetMs = ESTIMATE_BUDGET_MS,
    receiptsBudgetMs,
    chainAccounts,
  }: WalletNodeOptions = {},
): WalletNode {
  const evm = createEvmClient(rpc);
  const receipts = new ReceiptReader(rpc, receiptsBudgetMs);
  return {
    view: (wallet, { signal }) => readView(rpc, { wallet, identity, chainAccounts, signal }),
    haveCode: (addresses, options) => askHaveCode(rpc, addresses, options),
    async estimate(wallet, payments, { signal, at, perCall = ESTIMATES_PER_CALL }) {
      const calls = payments.map((payment) => ({
        method: "eth_estimateGas",
        params: [messageOf(wallet, payment), toQuantity(at)],
      }));
      const meanings = await estimateInParts(rpc, calls, { signal, perCall, budgetMs });
      return withoutRefusedTransfers(rpc, { wallet, payments, meanings, signal, at, budgetMs });
    },
    tokenBalances: (account, tokens, at, { signal }) =>
      evm.tokenBalances(
        tokens.map((token) => ({ token, account, at })),
        { signal },
      ),
    send: (raws, { signal }) => evm.sendRawTransactions(raws, { signal }),
    receipts: (hashes, { signal }) => receipts.read(hashes, { signal }),
    headers: (heights, { signal }) => evm.getBlockHeaders(heights, { signal }),
    keptBlocks: ({ signal }) => readKeptBlocks(rpc, identity, signal),
    async assertChain({ signal }) {
      const [chainId, genesis] = await rpc.batch(IDENTITY_CALLS, { signal });
      assertIdentity(identity, { chainId, genesis });
    },
  };
}

/** The message that a payment's transaction will be. */
function messageOf(wallet: Address, payment: PaymentEstimate): Readonly<Record<string, string>> {
  const { to, valueAtoken, gasPriceAtoken, gasMax } = payment;
  return {
    ...encodeEstimate({ from: wallet, to, valueAtoken, data: calldataOf(payment) }),
    gas: toQuantity(gasMax),
    gasPrice: toQuantity(gasPriceAtoken),
  };
}

/**
 * Tokens may answer that they did not transfer instead of reverting, which an estimate does not show.
 * What the contract answers is asked for, and believed where it is a refusal.
 */
async function withoutRefusedTransfers(
  rpc: JsonRpcClient,
  asked: {
    readonly wallet: Address;
    readonly payments: readonly PaymentEstimate[];
    readonly meanings: readonly (EstimateMeaning | undefined)[];
    readonly signal: AbortSignal;
    readonly at: Height;
    readonly budgetMs: number;
  },
): Promise<(EstimateMeaning | undefined)[]> {
  const { wallet, payments, meanings, at } = asked;
  const transfers = payments.flatMap((payment, index) => {
    const isPayable = payment.transfer !== undefined && meanings[index]?.kind === "payable";
    return isPayable ? [{ payment, index }] : [];
  });
  if (transfers.length === 0) return [...meanings];
  const calls = transfers.map(({ payment }) => ({
    method: "eth_call",
    params: [messageOf(wallet, payment), toQuantity(at)],
  }));
  const outcomes = await callInTime(rpc, calls, asked);
  const checked = [...meanings];
  transfers.forEach(({ index }, position) => {
    const outcome = outcomes[position];
    if (outcome?.ok !== true)
      checked[index] = { kind: "unknown", reason: "its call gave no answer" };
    else if (!isAgreement(readHex(outcome.result, "answer of a transfer"))) {
      const reason = "the token answers that it does not transfer";
      checked[index] = { kind: "refused-by-destination", reason };
    }
  });
  return checked;
}

/** Outcomes of the calls; none where the node did not answer in time: code may take it long. */
async function callInTime(
  rpc: JsonRpcClient,
  calls: readonly RpcCall[],
  { signal, budgetMs }: { readonly signal: AbortSignal; readonly budgetMs: number },
): Promise<readonly RpcOutcome[]> {
  const limited = limitedSignal([signal], budgetMs);
  try {
    return await rpc.batch(calls, { signal: limited });
  } catch (error) {
    signal.throwIfAborted();
    const isLate = error instanceof NodeFault && error.code === "NODE_TIMEOUT";
    if (!isLate && !limited.aborted) throw error;
    return [];
  }
}

/** Older tokens answer nothing; the standard's answer is one word that is not zero. */
function isAgreement(answer: Hex): boolean {
  return answer === "0x" || (decodeUnits(answer) ?? 0n) !== 0n;
}

/** A call without parameters. */
function plain(method: string): RpcCall {
  return { method, params: [] };
}

/** What tells a chain from another one. */
const IDENTITY_CALLS: readonly RpcCall[] = [plain("eth_chainId"), headerCall(0)];

/** @throws WRONG_NODE */
function assertIdentity(
  identity: ChainIdentity,
  answers: {
    readonly chainId: RpcOutcome | undefined;
    readonly genesis: RpcOutcome | undefined;
  },
): void {
  const chainId = readQuantity(resultOf(answers.chainId), "chain id");
  const genesisHash = parseHeader(resultOf(answers.genesis)).hash;
  if (chainId === identity.chainId && genesisHash === identity.genesisHash) return;
  throw new WorkerError("WRONG_NODE", "the node serves another chain than the ledger's", {
    details: { chainId: chainId.toString(), genesisHash },
  });
}

async function readView(
  rpc: JsonRpcClient,
  options: {
    readonly wallet: Address;
    readonly identity: ChainIdentity;
    readonly chainAccounts: Pick<KnownAccounts, "ask"> | undefined;
    readonly signal: AbortSignal;
  },
): Promise<WalletView> {
  const { wallet, identity, chainAccounts, signal } = options;
  const [chainId, genesis, syncing, blockNumber] = await rpc.batch(
    [...IDENTITY_CALLS, plain("eth_syncing"), plain("eth_blockNumber")],
    { signal },
  );
  assertIdentity(identity, { chainId, genesis });
  if (parseSyncing(resultOf(syncing))) {
    throw new WorkerError("NODE_BEHIND", "the node is catching up", { retriable: true });
  }
  // No nonce is given without a view, and none by a guess at whom nobody pays.
  await chainAccounts?.ask({ signal });
  const height = readSafeQuantity(resultOf(blockNumber), "block number");
  const count = (at: string) => ({ method: "eth_getTransactionCount", params: [wallet, at] });
  // With the chain's name once more: behind a balancer this exchange may be another node's.
  const [chain, first, balance, nonce, pending, price, header, capabilities] = await rpc.batch(
    [
      ...IDENTITY_CALLS,
      balanceCall(wallet, height),
      count(toQuantity(height)),
      count("pending"),
      plain("eth_gasPrice"),
      headerCall(height),
      plain("eth_capabilities"),
    ],
    { signal },
  );
  assertIdentity(identity, { chainId: chain, genesis: first });
  return {
    height,
    blockHash: parseHeader(resultOf(header)).hash,
    balanceAtoken: readQuantity(resultOf(balance), "balance"),
    nonce: readNonce(resultOf(nonce), "nonce"),
    pendingNonce: readNonce(resultOf(pending), "pending nonce"),
    suggestedPriceAtoken: readQuantity(resultOf(price), "gas price"),
    maxTransactionGas: readTransactionGas(header, capabilities),
  };
}

/** Each exchange names its chain: behind a balancer the next one may be another node's. */
async function readKeptBlocks(
  rpc: JsonRpcClient,
  identity: ChainIdentity,
  signal: AbortSignal,
): Promise<KeptBlocks> {
  const calls = [...IDENTITY_CALLS, headerCall("latest"), plain("eth_capabilities")];
  const [chainId, genesis, head, capabilities] = await rpc.batch(calls, { signal });
  assertIdentity(identity, { chainId, genesis });
  const headSeconds = parseHeader(resultOf(head)).timestampSeconds;
  // As a node without the method: what it keeps is not known, and what is missing is denied as ever.
  const saysNothing = capabilities?.ok === false && isOfOneQuestion(capabilities.error);
  const oldest = saysNothing ? 0 : parseOldestReceipts(resultOf(capabilities));
  // There is no transaction in block 0.
  if (oldest <= 1) return { oldestSeconds: -Infinity, headSeconds };
  const [chain, first, block] = await rpc.batch([...IDENTITY_CALLS, headerCall(oldest)], {
    signal,
  });
  assertIdentity(identity, { chainId: chain, genesis: first });
  // It may have been deleted in between, or lie behind the balancer's other node.
  const isShown = block?.ok === true && block.result !== null;
  const oldestSeconds = isShown ? parseHeader(block.result).timestampSeconds : Infinity;
  return { oldestSeconds, headSeconds };
}

/** A nonce below 2^63; EIP-2681 ends them at 2^64 - 1, and no wallet gets near. */
function readNonce(value: unknown, name: string): bigint {
  const nonce = readQuantity(value, name);
  if (nonce >= 2n ** 63n) throw badAnswer(`${name} is beyond every wallet's`);
  return nonce;
}

/**
 * The lower of the block's gas limit and what this chain's nodes name in `eth_capabilities`; others
 * do not know that method, or not this member.
 */
function readTransactionGas(
  header: RpcOutcome | undefined,
  capabilities: RpcOutcome | undefined,
): bigint | undefined {
  const limits = [
    memberOf(resultOf(header), "gasLimit"),
    capabilities?.ok === true ? memberOf(capabilities.result, "transactionGas") : undefined,
  ]
    .filter((limit) => limit !== undefined)
    .map((limit) => readQuantity(limit, "gas limit"));
  const [first, second = first] = limits;
  return first === undefined || second === undefined || first < second ? first : second;
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}
