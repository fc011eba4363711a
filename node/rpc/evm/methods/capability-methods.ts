/** What this node can be asked: eth_capabilities, eth_config, and the fees that it has not. */
import { crc32 } from "node:zlib";
import { type Height, hexToBytes, toQuantity } from "../../../../chain/hex.js";
import { NATIVE_CONTRACTS, PRECOMPILES_BY_NAME } from "../../../../chain/evm/precompiles.js";
import { type JsonValue, type MethodEntries, method } from "../method.js";
import type { EvmApiOptions } from "../options.js";

/** EIP-4844's fraction; there are no blobs, so it never changes a price. */
const BLOB_SCHEDULE: JsonValue = { baseFeeUpdateFraction: 3_338_477, max: 0, target: 0 };

/** Methods about the node's rules and reach. */
export function capabilityMethods(
  options: Pick<
    EvmApiOptions,
    | "view"
    | "network"
    | "retention"
    | "coinbase"
    | "maxTransactionGas"
    | "minimumGasPriceAtoken"
    | "chainAccounts"
  >,
): MethodEntries {
  const { view, network, retention, coinbase, chainAccounts } = options;
  const { feeCollector, treasury, validatorsPool, developmentFund, burnAddress } = chainAccounts;
  return [
    method("eth_capabilities", 0, () => {
      const { height, hash } = view.head();
      const oldest = view.oldest();
      const blocks = resource(oldest.block, retention.blocks);
      return {
        head: { number: toQuantity(height), hash },
        state: resource(oldest.state, retention.state),
        tx: blocks,
        logs: blocks,
        receipts: blocks,
        blocks,
        stateproofs: resource(oldest.proof, retention.proofs),
        // Beyond geth's members: a block's own limit is far above that of one transaction, what is suggested
        // may be far above what the pool takes, and what the genesis chose is in no block.
        transactionGas: toQuantity(options.maxTransactionGas),
        minimumGasPrice: toQuantity(options.minimumGasPriceAtoken),
        chainAccounts: { feeCollector, treasury, validatorsPool, developmentFund, burnAddress },
      };
    }),
    // EIP-7910. All rules hold from genesis on, and no others are planned.
    method("eth_config", 0, () => ({
      current: {
        activationTime: 0,
        blobSchedule: BLOB_SCHEDULE,
        chainId: toQuantity(network.evmChainId),
        forkId: forkId(view.genesis().block.hash),
        precompiles: Object.fromEntries([...PRECOMPILES_BY_NAME, ...NATIVE_CONTRACTS]),
        systemContracts: {},
      },
      next: null,
      last: null,
    })),
    method("eth_coinbase", 0, () => coinbase),
    // What BASEFEE and BLOBBASEFEE show (D7).
    method("eth_baseFee", 0, () => "0x0"),
    method("eth_blobBaseFee", 0, () => "0x1"),
  ];
}

function resource(oldest: Height, retentionBlocks: number | undefined): JsonValue {
  const available = { disabled: false, oldestBlock: toQuantity(oldest) };
  if (retentionBlocks === undefined) return available;
  const deleteStrategy = { type: "window", retentionBlocks: toQuantity(retentionBlocks) };
  return { ...available, deleteStrategy };
}

/** EIP-6122's FORK_HASH of a chain whose forks were all there at genesis. */
function forkId(genesisHash: string): string {
  return `0x${crc32(hexToBytes(genesisHash)).toString(16).padStart(8, "0")}`;
}
