/** CometBFT's `status`, from the node's read model. */
import { sha256 } from "../../../chain/crypto.js";
import { type Hash32, ZERO_HASH } from "../../../chain/hex.js";
import type { Network } from "../../../chain/networks.js";
import type { ChainView } from "../../chain-view.js";

/** Version that CosmJS recognises: it chooses its client by the leading "0.38.". */
const COMET_VERSION = "0.38.17";

/** CometBFT's protocol versions of that release. */
const PROTOCOL_VERSION = { p2p: "8", block: "11" } as const;

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
  /** Version of the application protocol, a decimal number. */
  readonly appVersion: string;
  readonly validator: {
    /** 32 bytes, ed25519. */
    readonly publicKey: Uint8Array;
    readonly votingPower: bigint;
  };
}

/** Hash without prefix, in upper case, as CometBFT writes it. */
function upperHex(hash: Hash32): string {
  return hash.slice(2).toUpperCase();
}

/** Go's RFC3339Nano: no trailing zeros in the fraction, no fraction where it is zero. */
function rfc3339(timeMs: number): string {
  return new Date(timeMs).toISOString().replace(/\.?0+Z$/, "Z");
}

/** Address of a validator: the first 20 bytes of SHA-256 of its key, upper-case hex. */
function validatorAddress(publicKey: Uint8Array): string {
  return Buffer.from(sha256(publicKey).subarray(0, 20)).toString("hex").toUpperCase();
}

/** The `result` of `status`. `app_hash` of a height is the EVM block hash before it (D8). */
export function cometStatus(options: CometStatusOptions): unknown {
  const { view, validator } = options;
  const head = view.head();
  const latest = view.block(head.height);
  const genesis = view.genesis();
  const firstHeight = Math.min(1, head.height);
  const first = (firstHeight === 0 ? genesis : view.block(firstHeight)) ?? genesis;
  return {
    node_info: {
      protocol_version: { ...PROTOCOL_VERSION, app: options.appVersion },
      id: options.nodeId,
      listen_addr: options.p2pListenAddress,
      network: options.network.cosmosChainId,
      version: COMET_VERSION,
      channels: "40202122233038606100",
      moniker: options.moniker,
      other: { tx_index: "on", rpc_address: options.rpcListenAddress },
    },
    sync_info: {
      latest_block_hash: upperHex(head.hash),
      latest_app_hash: upperHex(latest?.block.header.parentHash ?? ZERO_HASH),
      latest_block_height: head.height.toString(),
      latest_block_time: rfc3339(head.timeMs),
      earliest_block_hash: upperHex(first.block.hash),
      earliest_app_hash: upperHex(first.block.header.parentHash),
      earliest_block_height: firstHeight.toString(),
      earliest_block_time: rfc3339(first.block.timeMs),
      catching_up: options.isCatchingUp(),
    },
    validator_info: {
      address: validatorAddress(validator.publicKey),
      pub_key: {
        type: "tendermint/PubKeyEd25519",
        value: Buffer.from(validator.publicKey).toString("base64"),
      },
      voting_power: validator.votingPower.toString(),
    },
  };
}
