/** The two networks, their chain ids and default ports (spec: Networks and chain ids; D12, D17). */

/** Name of a network as in Rosetta's `network` field. */
export type NetworkName = "mainnet" | "testnet";

/** Identity of one network. */
export interface Network {
  readonly name: NetworkName;
  /** EIP-155 chain id. */
  readonly evmChainId: bigint;
  readonly cosmosChainId: string;
  /** Seed nodes, host:port without node id (placeholder zone until the launch). */
  readonly seeds: readonly string[];
  /**
   * False while the seeds above and the genesis in `cli/home/genesis` are placeholders, with which
   * no node can join anything. Whoever launches a network replaces both and sets it.
   */
  readonly isLaunched: boolean;
}

/** Rosetta's `blockchain` field (D12). */
export const BLOCKCHAIN_NAME = "token";

/** Both networks by name. */
export const NETWORKS: Readonly<Record<NetworkName, Network>> = {
  mainnet: {
    name: "mainnet",
    evmChainId: 6941n,
    cosmosChainId: "chain_6941-1",
    seeds: [1, 2, 3].map((index) => `seed${index}.mainnet.example:26656`),
    isLaunched: false,
  },
  testnet: {
    name: "testnet",
    evmChainId: 6940n,
    cosmosChainId: "chain_6940-1",
    seeds: [1, 2, 3].map((index) => `seed${index}.testnet.example:26656`),
    isLaunched: false,
  },
};

/** Default local port of every part; `--port-offset` is added to each. */
export const DEFAULT_PORTS = {
  p2p: 26656,
  cometRpc: 26657,
  metrics: 26660,
  rest: 1317,
  grpc: 9090,
  jsonRpc: 8545,
  webSocket: 8546,
  sidecarOnline: 8080,
  sidecarOffline: 8081,
  depositApi: 8082,
  withdrawalApi: 8083,
  indexer: 8084,
  explorer: 3000,
  console: 3001,
  postgres: 15432,
} as const;

/** A part that listens. */
export type PortName = keyof typeof DEFAULT_PORTS;

/** Mean time between blocks in production, milliseconds. */
export const BLOCK_INTERVAL_MS = 2_000;

/** What a genesis may name in its place. */
export const BLOCK_INTERVAL_BOUNDS_MS = { min: 50, max: 60_000 } as const;

/** Gas of a transfer to an account without code, without calldata: no transaction takes less. */
export const TRANSFER_GAS = 21_000n;

/** Price of gas that nodes suggest where their settings say nothing else. */
export const DEFAULT_GAS_PRICE_ATOKEN = 25_000_000n;

/** Blocks of 2 seconds in a year of 365 days (D13). */
export const BLOCKS_PER_YEAR = 15_768_000n;

/** Last height of the first inflation phase: 182.5 days of 2-second blocks (D13). */
export const FIRST_PHASE_LAST_HEIGHT = 7_884_000;

/** What is minted a year of what there is, in whole percent: up to that height, and behind it (D13). */
export const INFLATION_PERCENT = { first: 12n, later: 8n } as const;

/**
 * Accounts of the chain itself (D22). FeeCollector is a predeploy; nobody holds a key to the
 * others: their addresses are the first 20 bytes of SHA-256 of the names, as SDK modules have it.
 */
export const SYSTEM_ADDRESSES = {
  feeCollector: "0x0000000000000000000000000000000000fee001",
  treasury: "0x66fa9f9d3186b9c13a66b004fc8bb5f3359c4deb",
  validatorsPool: "0x93354845030274cd4bf1686abd60ab28ec52e1a7",
  developmentFund: "0xe0eba1c5a2a93415e930b7cf952bfa1285f9bcba",
} as const;

/** Role of a system account. */
export type SystemAccount = keyof typeof SYSTEM_ADDRESSES;
