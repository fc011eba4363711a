/** A chain without servers: store, state and executor, driven block by block by a test. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { type Address, parseAddress } from "../../../chain/address.js";
import { validatorAddress } from "../../../chain/consensus/validator-set.js";
import { decodeCosmosTransaction } from "../../../chain/cosmos/cosmos-transaction.js";
import { parseHexBytes } from "../../../chain/hex.js";
import { decodeTransaction, recoverSender } from "../../../chain/transaction.js";
import { CommittedView } from "../../../node/blocks/committed-view.js";
import type { BlockTransaction } from "../../../chain/block.js";
import { BlockRoom } from "../../../node/blocks/block-room.js";
import { BlockExecution } from "../../../node/blocks/block-executor.js";
import type { EngineName } from "../../../node/blocks/engines.js";
import { createGenesisBlock } from "../../../node/blocks/genesis-block.js";
import type { TransactionOutcome } from "../../../node/execution/transaction-executor.js";
import { createLocalGenesis, type Genesis } from "../../../node/settings/genesis.js";
import type { databaseSettings, memoryBytes } from "../../../node/settings/memory-config.js";
import type { BlockFacts } from "../../../node/modules/modules.js";
import { TrieCache } from "../../../node/state/trie-cache.js";
import { commitBlock, type ExecutedBlock } from "../../../node/store/block-commit.js";
import type { StoreError } from "../../../node/store/database.js";
import { openStores, type OpenStores } from "../../../node/store/open-store.js";
import { createTrieReader } from "../../../node/store/tries/trie-store.js";

/** Genesis with the faucet given; the hot wallet is an address without key. */
export function testGenesis(faucet: string): Genesis {
  return createLocalGenesis({
    network: "testnet",
    faucet: parseAddress(faucet),
    hotWallet: parseAddress(`0x${"ab".repeat(20)}`),
    genesisTimeMs: 1_750_000_000_000,
    validators: [
      {
        address: validatorAddress(Buffer.alloc(32, 1)),
        publicKey: Buffer.alloc(32, 1).toString("base64"),
        power: 1,
      },
    ],
  });
}

/** A running chain; `close` deletes its folder unless `keep` is asked. */
export class ExecutionChain {
  /** What consensus tells the modules of each block; nothing by itself. */
  facts: BlockFacts | undefined;

  private constructor(
    readonly genesis: Genesis,
    readonly folder: string,
    readonly stores: OpenStores,
    readonly view: CommittedView,
    readonly tries: TrieCache,
    readonly coinbase: Address,
  ) {}

  static async open(
    genesis: Genesis,
    options: {
      folder?: string;
      archive?: boolean;
      coinbase?: string;
      onDamage?: (error: StoreError) => void;
      /** Small where it is absent: tests have many chains. */
      memory?: ReturnType<typeof memoryBytes>;
      database?: ReturnType<typeof databaseSettings>;
    } = {},
  ): Promise<ExecutionChain> {
    const folder = options.folder ?? fs.mkdtempSync(path.join(os.tmpdir(), "causeway-chain-"));
    const stores = await openStores({
      folder,
      genesisBlock: createGenesisBlock(genesis),
      cosmosChainId: genesis.cosmosChainId,
      archive: options.archive ?? false,
      ...(options.onDamage === undefined ? {} : { onDamage: options.onDamage }),
      ...(options.memory === undefined ? {} : { memory: options.memory }),
      ...(options.database === undefined ? {} : { database: options.database }),
    });
    const maxSizeBytes = options.memory?.trieBytes ?? 2 ** 24;
    const tries = new TrieCache(createTrieReader(stores.database), { maxSizeBytes });
    const view = new CommittedView(stores, stores.head);
    const coinbase = parseAddress(options.coinbase ?? genesis.validators[0]?.address);
    return new ExecutionChain(genesis, folder, stores, view, tries, coinbase);
  }

  /**
   * Executes raw transactions as one block, without storing it.
   * @param cosmosRaws `TxRaw`s, behind the EVM's
   */
  async execute(
    raws: readonly string[],
    cosmosRaws: readonly Uint8Array[] = [],
    engine: EngineName = "causeway",
    facts = this.facts,
  ): Promise<{ executed: ExecutedBlock; outcomes: TransactionOutcome[] }> {
    const execution = this.start(engine, facts);
    const outcomes: TransactionOutcome[] = [];
    for (const raw of raws) {
      const tx = decodeTransaction(parseHexBytes(raw));
      outcomes.push(
        await execution.add({ tx, from: recoverSender(tx) }, this.genesis.params.maxComputeNs),
      );
    }
    for (const raw of cosmosRaws) {
      const tx = decodeCosmosTransaction(raw);
      const from = tx.signers[0];
      if (from === undefined) throw new Error("nobody signed");
      const outcome = await execution.addCosmos({ tx, from }, this.genesis.params.maxComputeNs);
      if (!outcome.included) throw new Error(outcome.reason);
    }
    return { executed: await execution.seal(), outcomes };
  }

  /** Executes, stores and publishes one block. */
  async mine(raws: readonly string[], cosmosRaws: readonly Uint8Array[] = [], facts = this.facts) {
    const { executed, outcomes } = await this.execute(raws, cosmosRaws, "causeway", facts);
    await this.store(executed);
    return { ...executed, outcomes };
  }

  /**
   * Mines a block of those at the front that fit, as a proposer does: compute units are its bound.
   * @throws when one of them cannot be executed or fails
   */
  async fill(
    transactions: readonly BlockTransaction[],
  ): Promise<{ readonly count: number; readonly gasUsed: bigint; readonly computeNs: number }> {
    const execution = this.start("causeway", this.facts);
    const used = { count: 0, gasUsed: 0n, computeNs: 0 };
    const room = new BlockRoom(this.genesis.params);
    for (const transaction of transactions) {
      const taken = room.isFull ? undefined : room.take({ gasLimit: transaction.tx.gasLimit });
      if (taken === undefined) break;
      const outcome = await execution.add(transaction, room.computeLeftNs);
      if (!outcome.included && outcome.code === "OUT_OF_BLOCK_COMPUTE") break;
      if (!outcome.included) throw new Error(outcome.reason);
      const { receipt, computeNs } = outcome;
      if (receipt.status === 0) throw new Error(`${transaction.tx.hash} failed`);
      taken.executed({ gasUsed: receipt.gasUsed, computeNs });
      used.count += 1;
      used.gasUsed += receipt.gasUsed;
      used.computeNs += computeNs;
    }
    await this.store(await execution.seal());
    return used;
  }

  private start(engine: EngineName, facts: BlockFacts | undefined): BlockExecution {
    const parent = this.view.head();
    const parentSupply = this.stores.blocks.supply(parent.height);
    if (parentSupply === undefined) throw new Error("no supply");
    const { state } = this.stores;
    return new BlockExecution(
      {
        chainId: this.genesis.evmChainId,
        params: this.genesis.params,
        state: state.readerAt(parent.height),
        tries: this.tries,
        blockHash: (height) => this.stores.blocks.hashOf(height),
        engine,
        monotonicMs: () => performance.now(),
      },
      {
        parent,
        parentSupply,
        timeMs: parent.timeMs + 2_000,
        coinbase: this.coinbase,
        ...(facts === undefined ? {} : { facts }),
      },
    );
  }

  private async store(executed: ExecutedBlock): Promise<void> {
    await commitBlock(this.stores, executed);
    this.stores.state.publish(executed.changes);
    this.tries.apply(executed.trieWrites);
    this.stores.blocks.remember(executed.committed);
    const { block } = executed.committed;
    this.view.moveHead({ height: block.header.height, hash: block.hash, timeMs: block.timeMs });
  }

  async close(options: { keep?: boolean } = {}): Promise<void> {
    await this.stores.state.close();
    await this.stores.database.close();
    if (options.keep !== true) fs.rmSync(this.folder, { recursive: true, force: true });
  }
}
