/**
 * One block executed a second time, by @ethereumjs/vm over proven state, and held against what the
 * chain says of it: receipts, balance journal, and everything that its header commits to.
 */
import { createBlock, type Block as LibraryBlock } from "@ethereumjs/block";
import type { Common } from "@ethereumjs/common";
import type { TypedTransaction } from "@ethereumjs/tx";
import { Account, type Address as LibraryAddress } from "@ethereumjs/util";
import { createVM, encodeReceipt, runTx, type RunTxResult, type VM } from "@ethereumjs/vm";
import { type Address, bytesToAddress } from "../../chain/address.js";
import { NATIVE_CONTRACTS, RESERVED_ADDRESSES } from "../../chain/evm/precompiles.js";
import type { JournaledTransaction } from "../../rpc-client/journal-codec.js";
import type { BalanceChange } from "../../chain/balance-change.js";
import { keccak256Hex } from "../../chain/hashes.js";
import { bytesToHash32, bytesToHex, type Hash32 } from "../../chain/hex.js";
import type { Atoken } from "../../chain/units.js";
import { NodeFault, RpcError } from "../../rpc-client/errors.js";
import { breathe } from "../../runtime/process/main-thread.js";
import type { AuditedReceipt, AuditNode } from "./audit-node.js";
import {
  addBloom,
  type AuditedBlock,
  type AuditedHeader,
  createChainCommon,
  MODULE_ACCOUNTS,
  RULED_REASONS,
  endOfBlock,
  listRoot,
  parseTransaction,
  type SupplyRange,
  supplyRoot,
  type SupplyTotals,
  type SystemAccounts,
  toLibraryAddress,
} from "./chain-rules.js";
import { creationComparison, journalComparisons, receiptComparisons } from "./comparisons.js";
import { AuditError, type Difference, firstDifference } from "./errors.js";
import { ProvenState } from "./proven-state.js";

/** Contracts of the chain itself, which only its own execution has. */
const OURS: ReadonlySet<Address> = new Set([...NATIVE_CONTRACTS.values(), ...RESERVED_ADDRESSES]);

/** What a block is executed on. */
export interface BlockAuditOptions {
  readonly node: AuditNode;
  readonly chainId: bigint;
  readonly accounts: SystemAccounts;
  /** Hash of an earlier block, proven by the chain of headers, for the BLOCKHASH opcode. */
  readonly blockHash: (height: number) => Promise<Hash32>;
  readonly signal: AbortSignal;
}

/** The supply before a block: its range, and the exact totals where they are known. */
export interface SupplyBefore {
  readonly range: SupplyRange;
  /** Undefined for an audit that does not begin at block 1. */
  readonly totals: SupplyTotals | undefined;
}

/** A block that agrees in everything. */
export interface AgreedBlock {
  readonly totals: SupplyTotals | undefined;
  readonly gasUsed: bigint;
  readonly logs: number;
}

/** What came of a block: what goes on to the next one, or the first difference. */
export type BlockVerdict = { readonly agreed: AgreedBlock } | { readonly difference: Difference };

/** What the transactions of a block came to. */
interface Executed {
  readonly receipts: readonly Uint8Array[];
  readonly bloom: Uint8Array;
  readonly gasUsed: bigint;
  readonly feesAtoken: Atoken;
  readonly destroyedAtoken: Atoken;
  readonly logs: number;
}

/** What the chain says of a transaction beside its bytes. */
interface Claims {
  readonly receipts: readonly AuditedReceipt[];
  /** What each EVM transaction moved, in their order. */
  readonly changes: readonly (readonly BalanceChange[])[];
  /** Cosmos transactions, in order. */
  readonly cosmos: readonly JournaledTransaction[];
  readonly blockChanges: readonly BalanceChange[];
}

/** Where in the chain something is claimed. */
type Place = Pick<Difference, "height" | "transaction">;

/** Executes blocks again, one after the other. */
export class BlockAudit {
  readonly #options: BlockAuditOptions;
  readonly #rules: Common;
  readonly #state: ProvenState;
  /** The state after the block, of which only the modules' storage is read. */
  readonly #after: ProvenState;
  readonly #vm: VM;
  /** The first transaction of the block that called a contract of the chain. */
  #calledOurs: Hash32 | undefined;
  #running: Hash32 | undefined;
  /** The first coins that were claimed to leave an account which has not so many. */
  #overdrawn: Difference | undefined;
  #cosmosTransactions = 0;

  private constructor(
    options: BlockAuditOptions,
    parts: {
      readonly rules: Common;
      readonly state: ProvenState;
      readonly after: ProvenState;
      readonly vm: VM;
    },
  ) {
    this.#options = options;
    this.#rules = parts.rules;
    this.#state = parts.state;
    this.#after = parts.after;
    this.#vm = parts.vm;
    this.#vm.evm.events?.on("beforeMessage", (message) => {
      // A creation has no such address, and says so by throwing.
      const called = message.to && bytesToAddress(message.codeAddress.bytes);
      if (called !== undefined && OURS.has(called)) this.#calledOurs ??= this.#running;
    });
  }

  static async create(options: BlockAuditOptions): Promise<BlockAudit> {
    const { node, signal } = options;
    const common = createChainCommon(options.chainId);
    const state = new ProvenState(node, { common, signal });
    const vm = await createVM({
      common,
      stateManager: state,
      evmOpts: {
        blockchain: {
          getBlock: async (height) => {
            const hash = await options.blockHash(height);
            return { hash: () => Buffer.from(hash.slice(2), "hex") };
          },
          putBlock: () => Promise.reject(new TypeError("an audit stores no blocks")),
          shallowCopy() {
            return this;
          },
        },
      },
    });
    const after = new ProvenState(node, { common, signal });
    return new BlockAudit(options, { rules: common, state, after, vm });
  }

  /** Cosmos transactions so far, which are not executed: the node alone says what they moved. */
  get cosmosTransactions(): number {
    return this.#cosmosTransactions;
  }

  /** Proofs that the node was asked for. */
  get fetchedProofs(): number {
    return this.#state.nodes.fetchedProofs;
  }

  /**
   * Executes a block on its parent's state.
   * @throws NOT_JUDGED, STATE_UNPROVEN, NODE_REFUSED and the client's errors: the audit cannot go on
   */
  async run(
    block: AuditedBlock,
    parent: Pick<AuditedHeader, "height" | "hash" | "stateRoot">,
    supply: SupplyBefore,
  ): Promise<BlockVerdict> {
    this.#calledOurs = undefined;
    this.#overdrawn = undefined;
    const judged = await this.#judge(block, parent, supply);
    const verdict = this.#overdrawn === undefined ? judged : { difference: this.#overdrawn };
    // Its contracts are no programs that this virtual machine has: a difference accuses nobody.
    const isUnfit = "difference" in verdict && this.#calledOurs !== undefined;
    if (isUnfit) throw notJudged(block.header.height, this.#calledOurs);
    return verdict;
  }

  async #judge(
    block: AuditedBlock,
    parent: Pick<AuditedHeader, "height" | "hash" | "stateRoot">,
    supply: SupplyBefore,
  ): Promise<BlockVerdict> {
    const { header } = block;
    const place = { height: header.height, transaction: undefined };
    const isBound = firstDifference(place, [
      { field: "height", chain: header.height, audit: parent.height + 1 },
      { field: "parentHash", chain: header.parentHash, audit: parent.hash },
      {
        field: "transactionsRoot",
        chain: header.transactionsRoot,
        audit: await listRoot(block.transactions),
      },
    ]);
    if (isBound !== undefined) return { difference: isBound };
    const claims = await this.#claims(header);
    const countDifference = firstDifference(place, [
      { field: "receipts", chain: claims.receipts.length, audit: block.transactions.length },
      { field: "journal", chain: claims.changes.length, audit: block.transactions.length },
    ]);
    const claimDifference = countDifference ?? creationOf(header, claims);
    if (claimDifference !== undefined) return { difference: claimDifference };
    await this.#state.startFrom(parent.height, parent.stateRoot);
    const executed = await this.#transactions(block, claims);
    return "difference" in executed
      ? executed
      : this.#seal(header, claims, executed.executed, supply);
  }

  async #claims({ height, hash }: AuditedHeader): Promise<Claims> {
    const { node } = this.#options;
    const [receipts, journal] = await Promise.all([node.receipts(height), node.journal(hash)]);
    return {
      receipts,
      changes: journal.transactions
        .filter(({ cosmos }) => cosmos === undefined)
        .map(({ changes }) => changes),
      cosmos: journal.transactions.filter(({ cosmos }) => cosmos !== undefined),
      blockChanges: journal.blockChanges,
    };
  }

  async #transactions(
    { header, transactions }: AuditedBlock,
    claims: Claims,
  ): Promise<{ readonly executed: Executed } | { readonly difference: Difference }> {
    const parsed: TypedTransaction[] = [];
    for (const raw of transactions) {
      const tx = parseTransaction(raw, this.#rules);
      if (tx instanceof Error) return refused(header, parsed.length, raw, tx);
      parsed.push(tx);
    }
    await this.#prefetch(header, parsed);
    const block = libraryBlock(header, this.#rules);
    const done = emptyExecution();
    const cosmos = [...claims.cosmos];
    const before = (dataIndex: number) => {
      const next = cosmos[0]?.cosmos;
      return next !== undefined && next.dataIndex <= dataIndex ? cosmos.shift() : undefined;
    };
    for (const [index, tx] of parsed.entries()) {
      for (let dataIndex = index + claims.cosmos.length - cosmos.length; ; dataIndex++) {
        const one = before(dataIndex);
        if (one === undefined) break;
        await this.#cosmosTransaction(header, one, done);
      }
      // The library hardly ever waits: a block of thousands would let no signal in.
      await breathe(this.#options.signal);
      const hash = bytesToHash32(tx.hash());
      this.#running = hash;
      const result = await this.#transaction(tx, block, done.gasUsed);
      if (result instanceof Error) return refused(header, index, transactions[index], result);
      const feeAtoken = await this.#passFeeOn(result, block.header.coinbase);
      done.gasUsed += result.totalGasSpent;
      done.feesAtoken += feeAtoken;
      done.logs += result.receipt.logs.length;
      done.receipts.push(encodeReceipt(result.receipt, tx.type));
      addBloom(done.bloom, result.bloom.bitvector);
      const balances = await this.#state.takeChanges(toLibraryAddress);
      for (const deltaAtoken of balances.values()) done.destroyedAtoken -= deltaAtoken;
      const place = { height: header.height, transaction: { index, hash } };
      const difference = firstDifference(place, [
        ...receiptComparisons(claims.receipts[index], { tx, result, gasUsed: done.gasUsed }),
        ...journalComparisons(claims.changes[index] ?? [], balances),
      ]);
      if (difference !== undefined) return { difference };
    }
    for (const one of cosmos) await this.#cosmosTransaction(header, one, done);
    return { executed: done };
  }

  /**
   * A Cosmos transaction is no program of the EVM: what the journal says that it moved is moved
   * here, too, and the state root tells whether that was all.
   */
  async #cosmosTransaction(
    { height }: AuditedHeader,
    { index, hash, from, changes, cosmos }: JournaledTransaction,
    done: Pick<ReturnType<typeof emptyExecution>, "feesAtoken" | "destroyedAtoken">,
  ): Promise<void> {
    this.#cosmosTransactions += 1;
    const sender = toLibraryAddress(from);
    const account = (await this.#state.getAccount(sender)) ?? new Account();
    account.nonce += 1n;
    await this.#state.putAccount(sender, account);
    const place = { height, transaction: { index, hash } };
    done.destroyedAtoken += await this.#moveAsClaimed(place, changes);
    await this.#state.takeChanges(toLibraryAddress);
    done.feesAtoken += cosmos?.feeAtoken ?? 0n;
  }

  /** @returns what ceased to be, atoken */
  async #moveAsClaimed(place: Place, changes: readonly BalanceChange[]): Promise<bigint> {
    let destroyedAtoken = 0n;
    for (const { effective, from, to, amountAtoken } of changes) {
      if (!effective) continue;
      if (from !== undefined && !(await this.#move(place, from, -amountAtoken))) continue;
      if (to !== undefined) await this.#move(place, to, amountAtoken);
      else destroyedAtoken += amountAtoken;
    }
    return destroyedAtoken;
  }

  /** Moves what is claimed. False, with the difference kept, where the account has not so many coins. */
  async #move(place: Place, address: Address, deltaAtoken: Atoken): Promise<boolean> {
    const missingAtoken = await this.#state.move(toLibraryAddress(address), deltaAtoken);
    if (missingAtoken === 0n) return true;
    const [field, chain] = [`balance of ${address}`, (-missingAtoken).toString()];
    this.#overdrawn ??= { ...place, field, chain, audit: "at least 0" };
    return false;
  }

  /**
   * The modules are no programs of the EVM either: what they moved at the block's end is taken from
   * the journal, and the storage that is their state as the block's own root proves it.
   * @returns what ceased to be, atoken
   */
  async #modules(header: AuditedHeader, changes: readonly BalanceChange[]): Promise<bigint> {
    const own = new Map<Address, Account>();
    for (const address of MODULE_ACCOUNTS) {
      const account = await this.#state.getAccount(toLibraryAddress(address));
      if (account?.isContract() === true) own.set(address, account);
    }
    if (own.size === 0) return 0n;
    const others = changes.filter(({ reason }) => !RULED_REASONS.has(reason));
    const place = { height: header.height, transaction: undefined };
    const destroyedAtoken = await this.#moveAsClaimed(place, others);
    await this.#after.startFrom(header.height, header.stateRoot);
    // Read one by one: of most blocks one account of them has changed, and the others' nodes are here.
    for (const address of [...own.keys()].map(toLibraryAddress)) {
      const account = await this.#state.getAccount(address);
      const proven = await this.#after.getAccount(address);
      if (account === undefined || proven === undefined) continue;
      account.storageRoot = proven.storageRoot;
      await this.#state.putAccount(address, account);
    }
    return destroyedAtoken;
  }

  /** What transactions name and what they read by the node's word, in a few requests instead of one each. */
  async #prefetch(header: AuditedHeader, transactions: readonly TypedTransaction[]): Promise<void> {
    if (transactions.length === 0) return;
    const { accounts, node } = this.#options;
    const { feeCollector, treasury, validatorsPool, developmentFund } = accounts;
    const named = new Set<Address>([feeCollector, treasury, validatorsPool, developmentFund]);
    named.add(bytesToAddress(header.coinbase));
    for (const tx of transactions) {
      named.add(bytesToAddress(tx.getSenderAddress().bytes));
      if (tx.to !== undefined) named.add(bytesToAddress(tx.to.bytes));
    }
    const touched = await node.touched(header.height);
    for (const { address } of touched) named.delete(address);
    const plain = [...named].map((address) => ({ address, slots: [] }));
    await this.#state.prefetch([...plain, ...touched]);
  }

  async #transaction(
    tx: TypedTransaction,
    block: LibraryBlock,
    blockGasUsed: bigint,
  ): Promise<RunTxResult | Error> {
    try {
      const options = { tx, block, blockGasUsed, skipBlockGasLimitValidation: true };
      return await runTx(this.#vm, options);
    } catch (error) {
      // What the VM refuses must not be in a block; a state that cannot be read is no verdict.
      const isOutside =
        error instanceof AuditError || error instanceof RpcError || error instanceof NodeFault;
      if (isOutside || this.#options.signal.aborted || !(error instanceof Error)) throw error;
      return error;
    }
  }

  /** The VM pays the proposer; here every fee goes to the FeeCollector at once (D3). */
  async #passFeeOn(result: RunTxResult, coinbase: LibraryAddress): Promise<bigint> {
    const feeAtoken = result.minerValue;
    await this.#state.move(coinbase, -feeAtoken);
    await this.#state.move(toLibraryAddress(this.#options.accounts.feeCollector), feeAtoken);
    return feeAtoken;
  }

  async #seal(
    header: AuditedHeader,
    claims: Claims,
    executed: Executed,
    { range, totals }: SupplyBefore,
  ): Promise<BlockVerdict> {
    const place = { height: header.height, transaction: undefined };
    const claimedAtoken = claims.blockChanges
      .filter(({ from }) => from === undefined)
      .reduce((sum, { amountAtoken }) => sum + amountAtoken, 0n);
    const mintAtoken = range.mintOf(header.height, claimedAtoken);
    const end = endOfBlock(executed.feesAtoken, mintAtoken, this.#options.accounts);
    for (const [address, deltaAtoken] of end.changes) {
      await this.#move(place, address, deltaAtoken);
    }
    const destroyedAtoken = await this.#modules(header, claims.blockChanges);
    const balances = await this.#state.takeChanges(toLibraryAddress);
    const burnedAtoken = end.burnedAtoken + executed.destroyedAtoken + destroyedAtoken;
    range.add(mintAtoken - burnedAtoken);
    const after = totals && {
      mintedAtoken: totals.mintedAtoken + mintAtoken,
      burnedAtoken: totals.burnedAtoken + burnedAtoken,
    };
    const difference = firstDifference(place, [
      ...journalComparisons(claims.blockChanges, balances),
      { field: "gasUsed", chain: header.gasUsed, audit: executed.gasUsed },
      {
        field: "logsBloom",
        chain: bytesToHex(header.logsBloom),
        audit: bytesToHex(executed.bloom),
      },
      {
        field: "receiptsRoot",
        chain: header.receiptsRoot,
        audit: await listRoot(executed.receipts),
      },
      {
        field: "stateRoot",
        chain: header.stateRoot,
        audit: bytesToHash32(await this.#state.getStateRoot()),
      },
      {
        field: "extraData",
        chain: header.moduleRoot,
        audit: after === undefined ? header.moduleRoot : await supplyRoot(after),
      },
    ]);
    if (difference !== undefined) return { difference };
    return { agreed: { totals: after, gasUsed: executed.gasUsed, logs: executed.logs } };
  }
}

/** The first that makes coins of what is moved as the journal says: the header of a forger would fit it. */
function creationOf({ height }: AuditedHeader, claims: Claims): Difference | undefined {
  for (const { index, hash, changes } of claims.cosmos) {
    const place = { height, transaction: { index, hash } };
    const difference = firstDifference(place, [creationComparison(changes)]);
    if (difference !== undefined) return difference;
  }
  const ofModules = claims.blockChanges.filter(({ reason }) => !RULED_REASONS.has(reason));
  return firstDifference({ height, transaction: undefined }, [creationComparison(ofModules)]);
}

function emptyExecution() {
  return {
    receipts: [] as Uint8Array[],
    bloom: new Uint8Array(256),
    gasUsed: 0n,
    feesAtoken: 0n,
    destroyedAtoken: 0n,
    logs: 0,
  };
}

/** A transaction that is in the block and that the VM does not take. */
function refused(
  { height }: AuditedHeader,
  index: number,
  raw: Uint8Array | undefined,
  error: Error,
): { readonly difference: Difference } {
  const transaction = { index, hash: keccak256Hex(raw ?? new Uint8Array(0)) };
  const field = "validity";
  const difference = { height, transaction, field, chain: "included", audit: error.message };
  return { difference };
}

function libraryBlock(header: AuditedHeader, common: Common): LibraryBlock {
  const { height, timestampSeconds, gasLimit, mixHash, coinbase } = header;
  return createBlock(
    {
      header: {
        number: BigInt(height),
        coinbase,
        timestamp: timestampSeconds,
        gasLimit,
        mixHash,
        baseFeePerGas: 0n,
      },
    },
    { common, skipConsensusFormatValidation: true },
  );
}

function notJudged(height: number, transaction: Hash32 | undefined): AuditError {
  return new AuditError(
    "NOT_JUDGED",
    `Block ${height} cannot be judged: transaction ${transaction} calls a contract of the chain itself ` +
      "(staking, governance, ...), which is no program of the virtual machine that executes here. " +
      `The blocks before it agree; go on with --from ${height + 1}.`,
    { details: { height, transaction } },
  );
}
