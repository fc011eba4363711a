/** What the consensus RPC reads of the node, beside the status. */
import type { Address } from "../../../chain/address.js";
import type { DuplicateVoteEvidence } from "../../../chain/consensus/evidence.js";
import type { Vote } from "../../../chain/consensus/vote.js";
import type { CosmosResult } from "../../../chain/cosmos/cosmos-result.js";
import type { CosmosTransaction } from "../../../chain/cosmos/cosmos-transaction.js";
import type { SdkFault } from "../../../chain/cosmos/sdk-fault.js";
import type { Hash32, Height } from "../../../chain/hex.js";
import type { Atoken } from "../../../chain/units.js";
import type { ChainView } from "../../view/chain-view.js";
import type { ConsensusMoment, ConsensusView, Reception } from "../../consensus/consensus-ports.js";
import type { EventBus } from "../../view/event-bus.js";
import type { NetworkPeer } from "../../p2p/network-port.js";
import type { TransactionPool } from "../../mempool/pool-port.js";

/** Consensus as this server reads it. */
export interface CometConsensus extends ConsensusView {
  /** Height of a consensus block hash. */
  heightOfHash(hash: Hash32): Height | undefined;
}

/** The event index; heights ascend, both ends of a range are included. */
export interface EventIndex {
  heightsOfType(type: string, from: Height, to: Height): AsyncIterable<Height>;
  heightsOfAmount(amountAtoken: Atoken, from: Height, to: Height): AsyncIterable<Height>;
}

/** The genesis as CometBFT shows it. */
export interface CometGenesis {
  readonly timeMs: number;
  readonly chainId: string;
  readonly validators: readonly {
    readonly address: Address;
    /** 32 bytes, ed25519. */
    readonly publicKey: Uint8Array;
    readonly power: bigint;
    readonly name: string;
  }[];
  /** EVM hash of block 0: what header 1 has as `app_hash`. */
  readonly appHash: Hash32;
  /** Version of the rules that the chain began with. */
  readonly appVersion: number;
  /** Our genesis file: a JSON object as text. */
  readonly appState: string;
}

/** The network as `net_info` shows it. */
export interface CometNetwork {
  /** Addresses this node listens at; empty while it does not. */
  readonly listeners: readonly string[];
  peers(): readonly NetworkPeer[];
}

/** What happens inside a height, for subscribers; each returns the end of the subscription. */
export interface ConsensusEvents {
  onMoment(listener: (moment: ConsensusMoment) => void): () => void;
  onVote(listener: (vote: Vote) => void): () => void;
}

/** Everything behind the routes that show the chain. */
export interface CometChain {
  readonly view: ChainView;
  readonly consensus: CometConsensus;
  readonly pool: TransactionPool;
  readonly bus: EventBus;
  readonly events: EventIndex;
  readonly genesis: CometGenesis;
  readonly network: CometNetwork;
  /** The pool's answer to a transaction: its hash once that is on disk, or why it is refused. */
  submit(raw: Uint8Array): Promise<Hash32 | Error>;
  /** Why the pool would refuse a transaction now; nothing is admitted. */
  checkTransaction(raw: Uint8Array): Promise<Error | undefined>;
  /** What the next block would make of a Cosmos transaction, without a pause; nothing of it is kept. */
  simulate(tx: CosmosTransaction): CosmosResult | SdkFault;
  /** Hands evidence to consensus, which verifies it. */
  addEvidence(evidence: DuplicateVoteEvidence): Promise<Reception>;
  /** Absent on a node that only follows. */
  readonly consensusEvents?: ConsensusEvents;
}
