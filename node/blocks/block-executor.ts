/**
 * One block from parent to sealed result: transactions in the given order, end-of-block moves,
 * proof of conservation, roots, header. Works on an overlay; readers see nothing of it, and a
 * block that is given up leaves no trace.
 */
import type { Address } from "../../chain/address.js";
import type { BalanceChange, BlockJournal } from "../../chain/balance-change.js";
import {
  type Block,
  type BlockHeader,
  type BlockTransaction,
  hashHeader,
} from "../../chain/block.js";
import { dataHashSteps } from "../../chain/consensus/consensus-block.js";
import {
  type CosmosBlockTransaction,
  inDataOrder,
  type MinedCosmosTransaction,
} from "../../chain/cosmos/cosmos-result.js";
import { SDK_CODE } from "../../chain/cosmos/sdk-fault.js";
import type { Hash32 } from "../../chain/hex.js";
import {
  encodeReceipt,
  mergeBloomSteps,
  receiptBehind,
  type Receipt,
} from "../../chain/receipt.js";
import { sdkTransactionHash } from "../../chain/consensus/sdk-transaction.js";
import { mapInSteps, type Steps } from "../../chain/steps/steps.js";
import type { SignedTransaction } from "../../chain/transaction.js";
import type { TransactionLimits } from "../../chain/transaction-rules.js";
import { Slices } from "../../runtime/process/slices.js";
import type { Head, Supply } from "../view/chain-view.js";
import { type ChainParams, transactionLimitsOf } from "../settings/genesis.js";
import type { AccountRecord } from "../store/account-record.js";
import { JournaledState } from "../state/journaled-state.js";
import type { MaybePromise, StateReader } from "../store/state-reader.js";
import { orderedTrieSteps } from "../state/ordered-trie.js";
import { rootSteps } from "../state/state-root.js";
import type { TrieNodeReader } from "../store/tries/trie-port.js";
import type { ExecutedBlock } from "../store/block-commit.js";
import { assertConserved, journalSums } from "./conservation.js";
import type { BlockContext } from "../execution/evm/evm.js";
import type { TransactionEngine } from "../execution/transaction-engine.js";
import { BlockEnd } from "./block-end.js";
import { endOfBlockChanges } from "./fees.js";
import { messageSenders } from "../../chain/abci-event.js";
import type { AbciEvent } from "../../chain/consensus/abci-types.js";
import type { ValidatorUpdate } from "../../chain/consensus/validator-set.js";
import { VestingLocks } from "../modules/vesting.js";
import { type BlockFacts, endModules, hasModules } from "../modules/modules.js";
import { appVersion } from "../modules/upgrade/plan.js";
import {
  assertUpgraded,
  beginUpgrade,
  PLAIN_UPGRADES,
  type Upgrades,
} from "../modules/upgrade/upgrades.js";
import {
  entersCode,
  executeTransaction,
  isStoreFault,
  type TransactionOutcome,
} from "../execution/transaction-executor.js";
import { executeCosmosTransaction } from "../execution/cosmos/cosmos-executor.js";
import { cosmosJournal, cosmosPart } from "../store/blocks/block-store.js";
import { createTransactionEngine, type EngineName } from "./engines.js";

const NO_FACTS: BlockFacts = { votes: [], misbehavior: [] };

/** What a block starts from. */
export interface BlockStart {
  readonly parent: Head;
  readonly parentSupply: Supply;
  readonly timeMs: number;
  readonly coinbase: Address;
  /** Hash over the SDK transactions, where a proposal has brought them and it. */
  readonly dataHash?: Hash32;
  /** What consensus tells the modules; nothing where nobody asks. */
  readonly facts?: BlockFacts;
}

/** What execution reads, and the chain's fixed parameters. */
export interface ExecutorOptions {
  readonly chainId: bigint;
  readonly params: ChainParams;
  readonly state: StateReader;
  readonly tries: TrieNodeReader;
  /** Hash of an earlier block, for the BLOCKHASH opcode. */
  readonly blockHash: (height: number) => Hash32;
  /** Absent: our own. */
  readonly engine?: EngineName;
  /** Monotonic milliseconds, only to decide when to yield. */
  readonly monotonicMs: () => number;
  /** Upgrades that this program is ready for; absent: those of the release. */
  readonly upgrades?: Upgrades;
}

/** Why a Cosmos transaction is not valid in the block, as far as that may follow from the block alone. */
type RefusedCosmosCode = "SDK_FAULT" | "NONCE_TOO_HIGH" | "INSUFFICIENT_FUNDS" | "TIMED_OUT";

const REFUSED_CODES: ReadonlyMap<number, RefusedCosmosCode> = new Map([
  [SDK_CODE.wrongSequence, "NONCE_TOO_HIGH"],
  [SDK_CODE.insufficientFunds, "INSUFFICIENT_FUNDS"],
  [SDK_CODE.timeoutHeight, "TIMED_OUT"],
  [SDK_CODE.timeout, "TIMED_OUT"],
]);

/** What became of a Cosmos transaction that was to be added. */
export type CosmosBlockOutcome =
  | { readonly included: true; readonly gasUsed: bigint; readonly computeNs: number }
  | {
      readonly included: false;
      readonly code: RefusedCosmosCode | "OUT_OF_BLOCK_COMPUTE";
      readonly reason: string;
    }
  | {
      readonly included: false;
      readonly code: "EXECUTION_FAULT";
      readonly reason: string;
      readonly cause: unknown;
    };

/** A block under construction. */
export class BlockExecution {
  private readonly state: JournaledState;
  private readonly transactions: BlockTransaction[] = [];
  private readonly receipts: Receipt[] = [];
  private readonly journals: BlockJournal["transactions"][number][] = [];
  private readonly context: BlockContext;
  private readonly limits: TransactionLimits;
  /** Of the rules that its header names: an upgrade of this very block counts from the next one. */
  private readonly appVersion: number;
  /** What the block does itself, before and after its transactions. */
  private readonly end: BlockEnd;
  private readonly cosmos: MinedCosmosTransaction[] = [];
  /** Accounts that searches of events know by their history, whether they changed or not. */
  private readonly named = new Set<Address>();
  private feesAtoken = 0n;
  private gasUsed = 0n;
  private computeNs = 0;
  private madeEngine: MaybePromise<TransactionEngine> | undefined;
  private readonly slices: Slices;

  constructor(
    private readonly options: ExecutorOptions,
    private readonly start: BlockStart,
  ) {
    this.state = new JournaledState(options.state);
    const { locks } = options.params;
    if (locks !== undefined) this.state.locks = new VestingLocks(this.state, locks, start.timeMs);
    this.slices = new Slices(options.monotonicMs);
    this.limits = transactionLimitsOf(options.chainId, options.params);
    const height = start.parent.height + 1;
    const { feeCollector, validatorsPool } = options.params;
    const { timeMs } = start;
    this.appVersion = appVersion(this.state);
    this.end = new BlockEnd({
      appVersion: this.appVersion,
      state: this.state,
      height,
      timeMs,
      validatorsPool,
      feeCollector,
    });
    this.context = {
      height,
      timestampSeconds: Math.floor(start.timeMs / 1000),
      coinbase: start.coinbase,
      gasLimit: options.params.maxGas,
      mixHash: start.parent.hash,
      native: {
        appVersion: this.appVersion,
        timeMs: start.timeMs,
        totalSupplyAtoken: start.parentSupply.totalAtoken,
        feeCollector: options.params.feeCollector,
        validatorsPool: options.params.validatorsPool,
      },
      blockHash: options.blockHash,
    };
  }

  /**
   * Does what is planned for the block, before its first transaction.
   * @throws UPGRADE_NEEDED, VERSION_UNKNOWN when this program must not make the block
   */
  begin(): void {
    if (!hasModules(this.state)) return;
    const upgrades = this.options.upgrades ?? PLAIN_UPGRADES;
    assertUpgraded(this.state, this.context.height, upgrades);
    beginUpgrade(this.end.context, upgrades);
  }

  /** True when the transaction may run code, in the state as it is now. */
  entersCode(tx: Pick<SignedTransaction, "to">): boolean {
    return entersCode(tx, (address) => this.state.accountNow(address));
  }

  /**
   * Executes a transaction and, if it is valid here, includes it.
   * @param computeLeftNs compute units that the block has left
   */
  async add(transaction: BlockTransaction, computeLeftNs: number): Promise<TransactionOutcome> {
    await this.slices.pause();
    const { maxTransactionComputeNs, computeWeights } = this.options.params;
    const outcome = await executeTransaction(transaction, {
      state: this.state,
      engine: () => this.engine(),
      compute: { blockLeftNs: computeLeftNs, maxTransactionNs: maxTransactionComputeNs },
      computeWeights,
      block: this.context,
      limits: this.limits,
      feeCollector: this.options.params.feeCollector,
    });
    if (!outcome.included) return outcome;
    this.gasUsed += outcome.receipt.gasUsed;
    this.computeNs += outcome.computeNs;
    this.feesAtoken += outcome.feeAtoken;
    this.transactions.push(transaction);
    this.receipts.push(receiptBehind(this.gasUsed, outcome.receipt));
    const { changes, events = [] } = outcome;
    const { hash: transactionHash } = transaction.tx;
    const journal = { transactionHash, changes };
    if (transaction.tx.to !== undefined) this.named.add(transaction.tx.to);
    for (const sender of messageSenders(events)) this.named.add(sender);
    this.journals.push(events.length === 0 ? journal : { ...journal, events });
    return outcome;
  }

  /** The same for a Cosmos transaction, whose signature counts. */
  async addCosmos(
    transaction: CosmosBlockTransaction,
    computeLeftNs: number,
  ): Promise<CosmosBlockOutcome> {
    await this.slices.pause();
    this.state.beginTransaction();
    const depth = this.state.depth();
    this.state.checkpoint();
    let outcome;
    try {
      outcome = this.executeCosmos(transaction, computeLeftNs);
    } catch (cause) {
      // As with code that fails the interpreter: the same bytes would fail everywhere and stay out.
      while (this.state.depth() > depth) this.state.revert();
      if (isStoreFault(cause)) throw cause;
      return { included: false, code: "EXECUTION_FAULT", reason: "execution fault", cause };
    }
    if (outcome.included && outcome.computeNs > computeLeftNs) {
      this.state.revert();
      return { included: false, code: "OUT_OF_BLOCK_COMPUTE", reason: "no compute units are left" };
    }
    this.state.commit();
    if (!outcome.included) {
      const { code, log } = outcome.fault;
      return { included: false, code: REFUSED_CODES.get(code) ?? "SDK_FAULT", reason: log };
    }
    const { result, changes, computeNs } = outcome;
    this.feesAtoken += outcome.feeAtoken;
    this.computeNs += computeNs;
    const index = this.transactions.length + this.cosmos.length;
    const { tx, from } = transaction;
    this.cosmos.push({ tx, from, index, result, changes });
    return { included: true, gasUsed: result.gasUsed, computeNs };
  }

  private executeCosmos(transaction: CosmosBlockTransaction, computeLeftNs: number) {
    return executeCosmosTransaction(transaction, {
      ...this.options.params,
      appVersion: this.appVersion,
      state: this.state,
      height: this.context.height,
      timeMs: this.start.timeMs,
      feesBeforeAtoken: this.feesAtoken,
      computeLeftNs,
    });
  }

  private engine(): MaybePromise<TransactionEngine> {
    this.madeEngine ??= createTransactionEngine(this.options, this.state);
    return this.madeEngine;
  }

  /**
   * Ends the block: fee split and mint, conservation, roots, header.
   * @throws BALANCE_JOURNAL_MISMATCH, SUPPLY_MISMATCH: the node must halt
   */
  async seal(): Promise<ExecutedBlock> {
    const { params } = this.options;
    const height = this.context.height;
    const { totalAtoken } = this.start.parentSupply;
    const { end } = this;
    end.move(endOfBlockChanges(height, this.feesAtoken, totalAtoken, params));
    const validatorUpdates = this.endModules(end);
    const journal = journalOf(height, this.journals, end.changes, this.cosmos, end.events);
    const { slices } = this;
    const sums = await slices.run(journalSums(journal));
    const changed = await slices.run(this.state.changedAccountSteps());
    await slices.run(assertConserved(journal, sums, changed));
    const supply = nextSupply(this.start.parentSupply, journal);
    const storage = await slices.run(this.state.changedStorageSteps());
    const accounts = this.changedWithJournalled(changed, sums, storage);
    const modules = moduleValues(supply);
    const { tries } = this.options;
    const roots = await slices.run(rootSteps(tries, accounts, storage, modules, this.state));
    const sdkHashes = await slices.run(this.sdkHashes());
    const block = await slices.run(this.sealHeader(roots, sdkHashes));
    return {
      committed: { block, receipts: this.receipts, journal },
      changes: { height, accounts: roots.accounts, storage, codes: this.state.newCodes() },
      trieWrites: roots.trieWrites,
      supply,
      sdkHashes,
      computeNs: this.computeNs,
      ...(validatorUpdates === undefined
        ? {}
        : { validatorUpdates, appVersion: appVersion(this.state) }),
    };
  }

  /** The modules' end of the block; their moves and events join the block's. */
  private endModules(end: BlockEnd): ValidatorUpdate[] | undefined {
    if (!hasModules(this.state)) return undefined;
    const { validatorsPool } = this.options.params;
    const mintedAtoken = end.changes
      .filter(({ reason, to }) => reason === "MINT" && to === validatorsPool)
      .reduce((sum, { amountAtoken }) => sum + amountAtoken, 0n);
    return endModules(end.context, this.start.facts ?? NO_FACTS, mintedAtoken);
  }

  /**
   * Changed accounts, those whose storage changed, those whose journal cancels out, and those that
   * events name: a call may change nothing of whom it is made to.
   */
  private changedWithJournalled(
    changed: ReadonlyMap<Address, { after: AccountRecord | undefined }>,
    sums: ReadonlyMap<Address, bigint>,
    storage: ReadonlyMap<Address, unknown>,
  ): Map<Address, AccountRecord | undefined> {
    const accounts = new Map<Address, AccountRecord | undefined>();
    for (const [address, { after }] of changed) accounts.set(address, after);
    for (const address of [...sums.keys(), ...storage.keys(), ...this.named]) {
      if (!accounts.has(address)) accounts.set(address, this.state.accountNow(address));
    }
    return accounts;
  }

  private *sdkHashes(): Steps<Hash32[]> {
    const hashes = yield* mapInSteps(
      this.transactions,
      ({ tx, from, sdkHash }) => sdkHash ?? sdkTransactionHash(tx, from),
    );
    const cosmos = this.cosmos.map(({ tx, index }) => ({ index, hash: tx.hash }));
    return inDataOrder(hashes, cosmos).map((one) => (typeof one === "string" ? one : one.hash));
  }

  private *sealHeader(
    roots: { stateRoot: Hash32; moduleRoot: Hash32 },
    sdkHashes: readonly Hash32[],
  ): Steps<Block> {
    const { context, receipts, transactions } = this;
    const encodedReceipts = yield* mapInSteps(receipts, encodeReceipt);
    const transactionsRoot = yield* orderedTrieSteps(transactions.map(({ tx }) => tx.raw));
    const receiptsRoot = yield* orderedTrieSteps(encodedReceipts);
    const logsBloom = yield* mergeBloomSteps(receipts.map((receipt) => receipt.logsBloom));
    const header: BlockHeader = {
      parentHash: this.start.parent.hash,
      coinbase: context.coinbase,
      stateRoot: roots.stateRoot,
      transactionsRoot,
      receiptsRoot,
      logsBloom,
      height: context.height,
      gasLimit: context.gasLimit,
      gasUsed: this.gasUsed,
      timestampSeconds: context.timestampSeconds,
      moduleRoot: roots.moduleRoot,
      mixHash: context.mixHash,
    };
    const dataHash = this.start.dataHash ?? (yield* dataHashSteps(sdkHashes));
    const { timeMs } = this.start;
    const own = { header, hash: hashHeader(header), timeMs, transactions, dataHash };
    return { ...own, ...cosmosPart(this.cosmos) };
  }
}

/** Journal of a block with its totals. */
export function journalOf(
  height: number,
  transactions: BlockJournal["transactions"],
  blockChanges: readonly BalanceChange[],
  cosmos: readonly MinedCosmosTransaction[] = [],
  moduleEvents: readonly AbciEvent[] = [],
): BlockJournal {
  let mintedAtoken = 0n;
  let burnedAtoken = 0n;
  const all = [...[...transactions, ...cosmos].map(({ changes }) => changes), blockChanges];
  for (const { from, to, amountAtoken, effective } of all.flat()) {
    if (!effective) continue;
    if (from === undefined) mintedAtoken += amountAtoken;
    else if (to === undefined) burnedAtoken += amountAtoken;
  }
  const own = { height, transactions, blockChanges, mintedAtoken, burnedAtoken };
  const events = moduleEvents.length === 0 ? {} : { moduleEvents };
  return { ...own, ...cosmosJournal(cosmos), ...events };
}

/** Supply after a block. */
export function nextSupply(parent: Supply, journal: BlockJournal): Supply {
  return {
    totalAtoken: parent.totalAtoken + journal.mintedAtoken - journal.burnedAtoken,
    mintedAtoken: parent.mintedAtoken + journal.mintedAtoken,
    burnedAtoken: parent.burnedAtoken + journal.burnedAtoken,
  };
}

/** What the modules' trie holds: so a block hash commits to the supply. */
export function moduleValues(supply: Supply): Record<string, bigint> {
  return {
    "bank/totalSupply": supply.totalAtoken,
    "bank/minted": supply.mintedAtoken,
    "bank/burned": supply.burnedAtoken,
  };
}
