/** Stand-ins for the node's parts that the network talks to, with real encodings. */
import { createHash } from "node:crypto";
import type { Address } from "../../../chain/address.js";
import { COMMIT_FLAG, EMPTY_COMMIT } from "../../../chain/consensus/commit.js";
import { decodeConsensusBlock, splitIntoParts } from "../../../chain/consensus/consensus-block.js";
import { type Vote, VOTE_TYPE } from "../../../chain/consensus/vote.js";
import { hashOfRaw } from "../../../chain/cosmos/cosmos-transaction.js";
import type { Hash32, Height } from "../../../chain/hex.js";
import type { Steps } from "../../../chain/steps/steps.js";
import { blockInvalid } from "../../../node/blocks/block-error.js";
import type {
  BlockSyncTarget,
  ConsensusInbox,
  ConsensusMessage,
  DecidedBlock,
  ReceivedBlock,
  Reception,
  RoundStatus,
} from "../../../node/consensus/consensus-ports.js";
import { STEP } from "../../../node/consensus/machine/consensus-state.js";
import type { PendingTransaction } from "../../../node/view/event-bus.js";
import type {
  NetworkPool,
  SenderContent,
  TransactionStatus,
} from "../../../node/mempool/pool-port.js";
import { PoolError } from "../../../node/mempool/pool-error.js";
import { DEFAULT_POOL_LIMITS, type PoolLimits } from "../../../node/mempool/pool-limits.js";
import { encodeConsensusMessage } from "../../../node/p2p/peers/peer-codec.js";

/** A hash that is a function of the text. */
export function hashOf(text: string): Hash32 {
  return `0x${createHash("sha256").update(text).digest("hex")}` as Hash32;
}

const ADDRESS = `0x${"11".repeat(20)}` as Address;

/** The chain's one true block of a height. */
export function trueBlock(height: Height, payloadBytes = 200): DecidedBlock {
  const hash = hashOf("x");
  const blockId = { hash: hashOf(`block ${height}`), parts: { total: 1, hash } };
  const transaction = Buffer.alloc(payloadBytes, `payload of ${height} `);
  return {
    block: {
      header: {
        blockVersion: 11,
        appVersion: 1,
        chainId: "test",
        height,
        timeNs: BigInt(height) * 1_000_000_000n,
        lastBlockId: height === 1 ? undefined : blockId,
        lastCommitHash: hash,
        dataHash: hash,
        validatorsHash: hash,
        nextValidatorsHash: hash,
        consensusHash: hash,
        appHash: hashOf(`app ${height}`),
        lastResultsHash: hash,
        evidenceHash: hash,
        proposerAddress: ADDRESS,
      },
      transactions: [transaction],
      evidence: [],
      lastCommit: EMPTY_COMMIT,
    },
    commit: {
      height,
      round: 0,
      blockId,
      signatures: [
        {
          flag: COMMIT_FLAG.commit,
          validatorAddress: ADDRESS,
          timeNs: 1n,
          signature: new Uint8Array(64).fill(7),
        },
      ],
    },
  };
}

/** A received block, read whatever its commit says. */
export function readBlock(received: ReceivedBlock): DecidedBlock {
  if ("block" in received) return received;
  const { blockBytes, commit } = received;
  return { block: decodeConsensusBlock(blockBytes), commit };
}

/** A store of such blocks; takes only true ones, in order. */
export class FakeChain implements BlockSyncTarget {
  readonly blocks: DecidedBlock[] = [];
  /** Heights that were given to peers, in order. */
  readonly served: Height[] = [];
  /** Blocks that were given to be applied, false ones included. */
  appliedCount = 0;

  constructor(
    height: Height,
    private readonly options: {
      /** What the store gives to peers instead of the true block. */
      readonly lie?: (decided: DecidedBlock) => DecidedBlock;
      readonly applyMs?: number;
      /** Whose commits prove nothing here, as where the validators are others by now. */
      readonly provesNothing?: boolean;
    } = {},
  ) {
    for (let one = 1; one <= height; one++) this.blocks.push(trueBlock(one));
  }

  height(): Height {
    return this.blocks.length;
  }

  base(): Height {
    return 1;
  }

  load(height: Height): DecidedBlock | undefined {
    const decided = this.blocks[height - 1];
    this.served.push(height);
    return decided === undefined ? undefined : (this.options.lie?.(decided) ?? decided);
  }

  *loadSteps(height: Height): Steps<DecidedBlock | undefined> {
    yield;
    return this.load(height);
  }

  isProof(commit: DecidedBlock["commit"]): boolean {
    if (this.options.provesNothing === true) return false;
    return commit.blockId?.hash === trueBlock(commit.height).commit.blockId?.hash;
  }

  async apply(received: ReceivedBlock): Promise<void> {
    const decided = readBlock(received);
    const { height, appHash } = decided.block.header;
    this.appliedCount++;
    if (height !== this.height() + 1) throw new Error(`block ${height} out of turn`);
    if (appHash !== hashOf(`app ${height}`)) throw blockInvalid("the app hash is another");
    const { applyMs = 0 } = this.options;
    await new Promise((resolve) => setTimeout(resolve, applyMs));
    this.blocks.push(decided);
  }
}

/** A vote whose first signature byte says what a fake driver makes of it: 0 is invalid. */
export function vote(options: { height?: Height; index?: number; mark?: number }): Vote {
  const { height = 1, index = 0, mark = 1 } = options;
  const signature = new Uint8Array(64).fill(3);
  signature[0] = mark;
  return {
    type: VOTE_TYPE.prevote,
    height,
    round: 0,
    blockId: undefined,
    timeNs: 5n,
    validatorAddress: ADDRESS,
    validatorIndex: index,
    signature,
  };
}

/** A block part message of 64 KiB. */
export function part(height: Height): ConsensusMessage {
  const { header, parts } = splitIntoParts(Buffer.alloc(200_000, `${height}`));
  const [first] = parts;
  if (first === undefined) throw new Error("parts");
  return { type: "part", height, round: 0, header, part: first };
}

/** A status of a node that has the first `prevotes` of four prevotes. */
export function statusAt(height: Height, prevotes = 0): RoundStatus {
  return {
    height,
    round: 0,
    step: STEP.prevote,
    hasProposal: false,
    parts: undefined,
    prevotes: [0, 1, 2, 3].map((index) => index < prevotes),
    precommits: [false, false, false, false],
    earlier: [],
  };
}

/** For parts that are tried without an account of what peers cost. */
export const freeOfCharge = {
  heard: () => undefined,
  forgive: () => undefined,
  mayServe: () => true,
  serve: <T>(_nodeId: unknown, work: () => T): T => work(),
  served: () => undefined,
};

/** How long a fake driver says that it judged what is invalid. */
export const INVALID_MS = 7;

/** Collects what it hears; votes and parts are new once. */
export class FakeDriver implements ConsensusInbox {
  readonly heard: { readonly message: ConsensusMessage; readonly peer: string }[] = [];
  /** Whose waiting messages were dropped. */
  readonly forgotten: string[] = [];
  current = statusAt(1);
  repairs: (peer: RoundStatus) => readonly ConsensusMessage[] = () => [];
  private readonly known = new Set<string>();

  receive(
    message: ConsensusMessage,
    peer: string,
    onInvalid: (spentMs: number) => void = () => undefined,
  ): Promise<Reception> {
    this.heard.push({ message, peer });
    const isInvalid = message.type === "vote" && message.vote.signature[0] === 0;
    if (isInvalid) {
      onInvalid(INVALID_MS);
      return Promise.resolve("invalid");
    }
    const key = createHash("sha256").update(encodeConsensusMessage(message)).digest("hex");
    if (this.known.has(key)) return Promise.resolve("known");
    this.known.add(key);
    return Promise.resolve("new");
  }

  forget(peer: string): void {
    this.forgotten.push(peer);
  }

  status(): RoundStatus {
    return this.current;
  }

  setSizeAt(): number {
    return this.current.prevotes.length;
  }

  repair(peer: RoundStatus): readonly ConsensusMessage[] {
    return this.repairs(peer);
  }
}

/** A pool whose transactions are any bytes; those that begin with 0 are invalid. */
export class FakePool implements NetworkPool {
  limits: PoolLimits = DEFAULT_POOL_LIMITS;
  readonly admitted = new Map<Hash32, Uint8Array>();
  submitCount = 0;
  onAdmitted: (transactions: readonly PendingTransaction[]) => void = () => undefined;

  submit(raws: readonly Uint8Array[]): Promise<readonly (Hash32 | Error)[]> {
    this.submitCount++;
    const fresh: PendingTransaction[] = [];
    const answers = raws.map((raw) => {
      if (raw[0] === 0) return new PoolError("INVALID_TRANSACTION", "bad");
      const hash = hashOfRaw(raw);
      if (this.admitted.has(hash)) return new PoolError("ALREADY_KNOWN", "already known");
      this.admitted.set(hash, raw);
      fresh.push(pending(raw));
      return hash;
    });
    this.onAdmitted(fresh);
    return Promise.resolve(answers);
  }

  status(hash: Hash32): TransactionStatus {
    return { status: this.admitted.has(hash) || this.told.has(hash) ? "pending" : "unknown" };
  }

  /** Looked at by greetings, in all. */
  lookedCount = 0;

  *senders(): Iterable<readonly [Address, SenderContent]> {
    for (const raw of this.admitted.values()) {
      this.lookedCount++;
      yield [ADDRESS, { pending: [pending(raw)], queued: [] }];
    }
  }

  /** What `promised` gives, whatever the time. */
  promises: readonly Uint8Array[] = [];

  /** What `promised` has given. */
  private readonly told = new Set<Hash32>();

  /** The time that was asked for last. */
  promisedBeforeMs = 0;

  promised(beforeMs: number): Iterable<PendingTransaction> {
    this.promisedBeforeMs = beforeMs;
    const promised = this.promises.map(pending);
    for (const { tx } of promised) this.told.add(tx.hash);
    return promised;
  }
}

function pending(raw: Uint8Array): PendingTransaction {
  // Only hash and bytes are looked at by the network.
  return { tx: { hash: hashOfRaw(raw), raw }, from: ADDRESS } as unknown as PendingTransaction;
}
