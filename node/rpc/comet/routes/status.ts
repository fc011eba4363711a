/** CometBFT's `status`, from the node's read model and, where there is one, from consensus. */
import { formatTime, msToNs } from "../../../../chain/consensus/block-id.js";
import { validatorAddress } from "../../../../chain/consensus/validator-set.js";
import { type Height, ZERO_HASH } from "../../../../chain/hex.js";
import { FIRST_APP_VERSION } from "../../../modules/reads/gov-reads.js";
import type { Network } from "../../../../chain/networks.js";
import type { ChainView } from "../../../view/chain-view.js";
import type { ConsensusView } from "../../../consensus/consensus-ports.js";
import { publicKeyJson, upperHex } from "../json/encode.js";

/**
 * Version that `status` shows and peers are told. CosmJS recognises it: it chooses its client by
 * the leading "0.38.".
 */
export const COMET_VERSION = "0.38.17";

/** CometBFT's protocol versions of that release. */
const PROTOCOL_VERSION = { p2p: "8", block: "11" } as const;

/** CometBFT's list of p2p channels; nothing reads it, but clients expect it. */
const CHANNELS = "40202122233038606100";

/** Where `status` comes from. */
export interface CometStatusOptions {
  readonly view: ChainView;
  readonly network: Network;
  readonly isCatchingUp: () => boolean;
  readonly moniker: string;
  /** 40 hex digits (D24). */
  readonly nodeId: string;
  /** `tcp://host:port` texts as CometBFT shows them. */
  readonly p2pListenAddress: string;
  readonly rpcListenAddress: string;
  readonly validator: {
    /** 32 bytes, ed25519. */
    readonly publicKey: Uint8Array;
    readonly votingPower: bigint;
  };
}

/** Version of the rules by which the next block is made; without consensus the first one. */
export function newestAppVersion(consensus: ConsensusView | undefined): number {
  return consensus?.appVersion(consensus.height() + 1) ?? FIRST_APP_VERSION;
}

/** What a node shows of itself and of its peers. */
export function nodeInfoJson(node: {
  readonly nodeId: string;
  readonly listenAddress: string;
  readonly cosmosChainId: string;
  readonly moniker: string;
  readonly rpcAddress: string;
  /** See `newestAppVersion`. */
  readonly appVersion: number;
}) {
  return {
    protocol_version: { ...PROTOCOL_VERSION, app: node.appVersion.toString() },
    id: node.nodeId,
    listen_addr: node.listenAddress,
    network: node.cosmosChainId,
    version: COMET_VERSION,
    channels: CHANNELS,
    moniker: node.moniker,
    other: { tx_index: "on", rpc_address: node.rpcAddress },
  };
}

/** One end of the chain that the node has. */
interface ChainEnd {
  readonly height: Height;
  readonly blockHash: string;
  readonly appHash: string;
  readonly time: string;
}

/**
 * One height as `sync_info` shows it. Without consensus the block hash is the EVM's;
 * `app_hash` of a height is the EVM block hash before it (D8) either way.
 */
function chainEnd(view: ChainView, consensus: ConsensusView | undefined, height: Height): ChainEnd {
  const decided = height === 0 ? undefined : consensus?.outline(height);
  if (decided !== undefined) {
    const { header, blockId } = decided;
    const blockHash = upperHex(blockId.hash);
    const time = formatTime(header.timeNs);
    return { height, blockHash, appHash: upperHex(header.appHash), time };
  }
  const { hash, header, timeMs } = view.outline(height) ?? view.genesis().block;
  return {
    height,
    blockHash: upperHex(hash),
    appHash: upperHex(height === 0 ? ZERO_HASH : header.parentHash),
    time: formatTime(msToNs(timeMs)),
  };
}

/** The `result` of `status`. */
export function cometStatus(options: CometStatusOptions, consensus?: ConsensusView): unknown {
  const { view, validator } = options;
  const head = consensus === undefined ? view.head().height : consensus.height();
  const height = Math.min(view.head().height, head);
  const latest = chainEnd(view, consensus, height);
  const earliest = chainEnd(view, consensus, Math.min(consensus?.base() ?? 1, height));
  const address = validatorAddress(validator.publicKey);
  const set = consensus?.validators(height + 1);
  const power = set === undefined ? validator.votingPower : set.at(set.indexOf(address))?.power;
  const isCatchingUp = consensus === undefined ? options.isCatchingUp() : consensus.isCatchingUp();
  return {
    node_info: nodeInfoJson({
      nodeId: options.nodeId,
      listenAddress: options.p2pListenAddress,
      cosmosChainId: options.network.cosmosChainId,
      moniker: options.moniker,
      rpcAddress: options.rpcListenAddress,
      appVersion: newestAppVersion(consensus),
    }),
    sync_info: {
      latest_block_hash: latest.blockHash,
      latest_app_hash: latest.appHash,
      latest_block_height: latest.height.toString(),
      latest_block_time: latest.time,
      earliest_block_hash: earliest.blockHash,
      earliest_app_hash: earliest.appHash,
      earliest_block_height: earliest.height.toString(),
      earliest_block_time: earliest.time,
      catching_up: isCatchingUp,
    },
    validator_info: {
      address: upperHex(address),
      pub_key: publicKeyJson(validator.publicKey),
      // A full node has a key, but no power.
      voting_power: (power ?? 0n).toString(),
    },
  };
}
