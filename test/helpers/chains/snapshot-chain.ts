/**
 * A followed chain with contracts of every fate, signed by four validators, and what a light
 * client would know of a height of it: for snapshots, restores and what follows them.
 */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { Wallet } from "ethers";
import { type Address, parseAddress } from "../../../chain/address.js";
import {
  executionResult,
  executionResultSteps,
} from "../../../chain/consensus/execution-result.js";
import { allAtOnce } from "../../../chain/steps/steps.js";
import type { DuplicateVoteEvidence } from "../../../chain/consensus/evidence.js";
import { contractAddressOf } from "../../../chain/evm/contract-address.js";
import {
  bigintToWord,
  bytesToHash32,
  type Hash32,
  parseHex,
  parseHexBytes,
} from "../../../chain/hex.js";
import { encodeSdkTransaction } from "../../../chain/consensus/sdk-transaction.js";
import { decodeTransaction, recoverSender } from "../../../chain/transaction.js";
import type { DecidedBlock } from "../../../node/consensus/consensus-ports.js";
import { createGenesisBlock } from "../../../node/blocks/genesis-block.js";
import type { GenesisAccount } from "../../../node/settings/genesis.js";
import { SnapshotFolder } from "../../../node/statesync/snapshot/snapshot-folder.js";
import {
  decodeManifest,
  type SnapshotManifest,
} from "../../../node/statesync/snapshot/snapshot-manifest.js";
import type { DiskRoom } from "../../../node/statesync/snapshot/snapshot-room.js";
import type { TrustedState } from "../../../node/statesync/statesync-ports.js";
import { ConsensusStore } from "../../../node/store/consensus-store.js";
import { createLogger } from "../../../runtime/process/logger.js";
import { SignedChain } from "./signed-chain.js";
import { validatorGenesis, ValidatorNode } from "./validator-node.js";

/** Says nothing. */
export const quietLog = createLogger({ component: "test", level: "silent" });

const faucet = new Wallet(`0x${"11".repeat(32)}`);

/** What a folder of snapshots is told of its disk: tests do not depend on the machine's. */
export const roomyDisk = async (): Promise<DiskRoom> => ({
  freeBytes: 2 ** 50,
  totalBytes: 2 ** 50,
});

/** Init code that deploys a runtime of less than 256 bytes. */
function deploying(runtime: string): string {
  const size = (runtime.length / 2).toString(16).padStart(2, "0");
  return `0x60${size}600c60003960${size}6000f3${runtime}`;
}

/** SSTORE(calldata[0], calldata[32]). */
export const KEEPER_INIT = deploying("6020356000355500");

/** SSTORE(NUMBER, BLOCKHASH(calldata[0])). */
export const WITNESS_INIT = deploying("60003540435500");

/** Writes a slot and destroys itself in the transaction that makes it. */
const MAYFLY_INIT = "0x600160015533ff";

/** Destroys itself when called: the account stays since EIP-6780, its coins go. */
const QUITTER_INIT = deploying("33ff");

/** Calldata of words. */
export function words(...values: readonly (number | bigint)[]): string {
  return `0x${values.map((value) => value.toString(16).padStart(64, "0")).join("")}`;
}

/** A snapshot in memory. */
export interface SnapshotFiles {
  readonly manifest: SnapshotManifest;
  readonly manifestBytes: Uint8Array;
  readonly chunks: readonly Uint8Array[];
}

/** Accounts and slots in no order of their hashes. */
function crowdOf(count: number): (readonly [Address, GenesisAccount])[] {
  const half = Array.from({ length: Math.floor(count / 2) }, (_, slot) => slot);
  return Array.from({ length: count }, (_, index) => {
    const address = parseAddress(`0x${"c".repeat(32)}${index.toString(16).padStart(8, "0")}`);
    const slots = index === 7 ? half : [];
    const storage = new Map(
      slots.map((slot) => [bytesToHash32(bigintToWord(BigInt(slot))), BigInt(slot + 1)]),
    );
    const code = index === 7 ? parseHex("0x6001") : undefined;
    return [address, { balanceAtoken: BigInt(index + 1), code, storage }] as const;
  });
}

/** The chain; all blocks that it made can be followed again. */
export class SnapshotChain {
  readonly decided: DecidedBlock[] = [];
  private nonce = 0;

  private constructor(
    readonly node: ValidatorNode,
    readonly chain: SignedChain,
  ) {}

  /** @param crowd further accounts of the genesis, one of them with half as many slots */
  static async open(crowd = 0): Promise<SnapshotChain> {
    const { genesis: usual, seeds } = validatorGenesis(4, { faucet: faucet.address });
    const genesis = { ...usual, alloc: new Map([...usual.alloc, ...crowdOf(crowd)]) };
    const node = await ValidatorNode.open({ genesis, seed: undefined });
    return new SnapshotChain(node, new SignedChain(genesis, seeds, node.view.head().hash));
  }

  get genesis() {
    return this.chain.genesis;
  }

  /** One block with these transactions of the faucet. */
  async take(
    intents: readonly {
      readonly to?: string;
      readonly data?: string;
      readonly value?: bigint;
    }[] = [],
    evidence: readonly DuplicateVoteEvidence[] = [],
  ): Promise<DecidedBlock> {
    const transactions: Uint8Array[] = [];
    for (const intent of intents) transactions.push(await this.sign(intent));
    const decided = this.chain.decide(this.chain.makeBlock({ transactions, evidence }));
    await this.node.consensus.apply(decided);
    const committed = this.node.view.block(decided.block.header.height);
    if (committed === undefined) throw new Error("the block is not published");
    const results = committed.receipts.map((receipt, index) => {
      const tx = committed.block.transactions[index]?.tx;
      if (tx === undefined) throw new Error("a receipt without a transaction");
      return executionResult(tx, receipt);
    });
    const resultsHash = allAtOnce(executionResultSteps(results));
    this.chain.follow(decided, { appHash: committed.block.hash, resultsHash });
    this.decided.push(decided);
    return decided;
  }

  /** Address of the contract that the faucet's next transaction but `skip` makes. */
  nextContract(skip = 0): Address {
    return contractAddressOf(parseAddress(faucet.address), BigInt(this.nonce + skip));
  }

  private async sign(intent: { to?: string; data?: string; value?: bigint }): Promise<Uint8Array> {
    const raw = await faucet.signTransaction({
      type: 0,
      chainId: this.genesis.evmChainId,
      nonce: this.nonce++,
      gasPrice: 25_000_000n,
      gasLimit: 300_000n,
      ...intent,
    });
    const tx = decodeTransaction(parseHexBytes(raw));
    return encodeSdkTransaction(tx, recoverSender(tx));
  }

  /** What a light client knows of the head; call `take` two times more for the next heights. */
  trusted(height: number, backfillBlocks = Number.MAX_SAFE_INTEGER): TrustedState {
    const store = new ConsensusStore(this.node.stores.database);
    const record = store.record(height);
    const next = store.record(height + 1);
    if (record === undefined || next === undefined) throw new RangeError("no such height");
    const headers = [];
    const sets: TrustedState["backfill"]["sets"][number][] = [];
    const evidence: TrustedState["backfill"]["evidence"][number][] = [];
    for (let at = height - 1; at >= Math.max(1, height - backfillBlocks); at--) {
      const header = store.record(at)?.header;
      if (header === undefined) throw new RangeError("no such height");
      headers.push(header);
      evidence.push(...(store.record(at)?.evidence ?? []));
      const isSame = sets.at(-1)?.validators.hash() === header.validatorsHash;
      if (!isSame) sets.push({ height: at, validators: this.chain.validators(at) });
    }
    return {
      header: record.header,
      blockId: record.blockId,
      lastCommit: record.lastCommit,
      evidence: record.evidence,
      commit: next.lastCommit,
      next: next.header,
      validators: this.chain.validators(height),
      nextValidators: this.chain.validators(height + 1),
      afterNextValidators: this.chain.validators(height + 2),
      backfill: { headers, sets, evidence },
    };
  }

  /** A snapshot of the head, written to files and read again. */
  async snapshot(): Promise<SnapshotFiles> {
    const folder = temporaryFolder("snapshots");
    try {
      const files = await SnapshotFolder.open({
        folder,
        genesisHash: this.hash(0),
        headHeight: this.node.height,
        oldestBlock: 0,
        log: quietLog,
        disk: roomyDisk,
      });
      await this.addTo(files);
      return await readFiles(files);
    } finally {
      fs.rmSync(folder, { recursive: true, force: true });
    }
  }

  /** Writes a snapshot of the head into a folder of snapshots. */
  async addTo(files: SnapshotFolder): Promise<void> {
    const { stores, view } = this.node;
    const { height } = this.node;
    const supply = view.supply(height);
    if (supply === undefined) throw new Error("no head");
    const snapshot = stores.database.snapshot();
    const input = { database: stores.database, view: snapshot, height, supply };
    const genesisHash = this.hash(0);
    await files.add({ ...input, genesisHash }, new AbortController().signal);
    await snapshot.close();
  }

  /** What a restore needs beside the snapshot. */
  restoreBase(folder: string) {
    return {
      folder,
      genesisBlock: createGenesisBlock(this.genesis),
      cosmosChainId: this.genesis.cosmosChainId,
      signal: new AbortController().signal,
    };
  }

  hash(height: number): Hash32 {
    return this.node.stores.blocks.hashOf(height);
  }

  async close(): Promise<void> {
    await this.node.stop();
  }
}

/** Blocks with contracts, storage that comes and goes, and contracts that end; three or more. */
export async function makeHistory(chain: SnapshotChain): Promise<{
  readonly keeper: Address;
  readonly witness: Address;
  readonly mayfly: Address;
  readonly quitter: Address;
}> {
  const [keeper, witness, mayfly, quitter] = [0, 1, 2, 3].map((skip) => chain.nextContract(skip));
  if (!keeper || !witness || !mayfly || !quitter) throw new Error("no address");
  await chain.take([
    { data: KEEPER_INIT },
    { data: WITNESS_INIT },
    { data: MAYFLY_INIT, value: 7n },
    { data: QUITTER_INIT, value: 9n },
    // A second contract with the same code: one code record for both.
    { data: KEEPER_INIT },
  ]);
  const put = (slot: number, value: number | bigint) => ({ to: keeper, data: words(slot, value) });
  await chain.take(Array.from({ length: 40 }, (_, slot) => put(slot, 2n ** BigInt(slot * 6))));
  const evidence = [chain.chain.doubleVote(3, 1)];
  await chain.take([put(3, 0), put(4, 0), put(5, 1), { to: quitter }], evidence);
  await chain.take(
    Array.from({ length: 60 }, (_, index) => ({
      to: `0x${"7".repeat(36)}${1000 + index}`,
      value: 5n,
    })),
  );
  await chain.take([{ to: witness, data: words(2) }]);
  return { keeper, witness, mayfly, quitter };
}

/** Manifest and chunks of the newest snapshot in a folder. */
export async function readFiles(files: SnapshotFolder): Promise<SnapshotFiles> {
  const [offer] = files.list();
  if (offer === undefined) throw new Error("no snapshot");
  const manifestBytes = await files.manifest(offer.height, offer.id);
  if (manifestBytes === undefined) throw new Error("no manifest");
  const chunks: Uint8Array[] = [];
  for (let index = 0; index < offer.chunks; index++) {
    const chunk = await files.chunk(offer.height, offer.id, index);
    if (chunk === undefined) throw new Error("no chunk");
    chunks.push(chunk);
  }
  return { manifest: decodeManifest(manifestBytes), manifestBytes, chunks };
}

/** A folder of its own for one test. */
export function temporaryFolder(name: string): string {
  return fs.mkdtempSync(path.join(os.tmpdir(), `causeway-${name}-`));
}
