/** Settings of the withdrawal worker: `<home>/config/worker.toml`. */
import { DEFAULT_PORTS, TRANSFER_GAS } from "../chain/networks.js";
import { MAX_LEASE_MS } from "../ledger/lease.js";
import { type ConfigOf, defineConfigFile, field } from "../runtime/config/config.js";
import { secondNodeFaults } from "../runtime/config/second-node.js";

/**
 * In the home: when the treasury's last round ended well, and in a second line until when that holds. It
 * listens on nothing, so whoever watches it looks at this file; there is none before its first round, nor
 * behind an orderly end.
 */
export const TREASURY_ROUND_FILE = "data/treasury-round";

/** Time that a round of the treasury is given. */
const TREASURY_ROUND_MS = 120_000;

/** How long behind the end of a round a treasury is taken to work. @param scanIntervalMs its setting */
export function treasuryRoundHoldsMs(scanIntervalMs: number): number {
  return scanIntervalMs + TREASURY_ROUND_MS;
}

const settings = defineConfigFile("worker", {
  api: {
    listen: field.listenAddress({
      default: `127.0.0.1:${DEFAULT_PORTS.withdrawalApi}`,
      help: "Where the withdrawal API listens. Its key is in config/api.key.",
    }),
    "body-limit-bytes": field.integer({
      default: 65_536,
      min: 1_024,
      max: 1_048_576,
      unit: "bytes",
      help: "Longest request body.",
    }),
  },
  chain: {
    network: field.choice({
      default: "testnet",
      values: ["testnet", "mainnet"],
      help: "Network that withdrawals are paid on; a node of another one is refused.",
    }),
  },
  node: {
    "json-rpc-url": field.url({
      default: `http://127.0.0.1:${DEFAULT_PORTS.jsonRpc}`,
      help: "JSON-RPC of the node: estimates, sending, receipts.",
    }),
    "second-json-rpc-url": field.url({
      default: "",
      help:
        "JSON-RPC of another node of the chain, which must show the same receipt before a payment is " +
        "settled. Empty asks one node alone; the first one is refused.",
    }),
    "request-timeout-ms": field.integer({
      default: 10_000,
      min: 100,
      max: 120_000,
      unit: "ms",
      help: "Longest wait for one answer. Its end says nothing: the same bytes are sent again.",
    }),
  },
  gas: {
    "margin-percent": field.integer({
      default: 20,
      min: 0,
      max: 400,
      unit: "percent",
      help: "Added to every estimate of gas.",
    }),
    "limit-max": field.bigint({
      default: 10_000_000n,
      min: TRANSFER_GAS,
      max: 600_000_000n,
      unit: "gas",
      help: "Most gas of one payment; a destination that needs more ends as failed.",
    }),
    "price-floor-atoken": field.bigint({
      default: 1n,
      min: 0n,
      max: 10n ** 18n,
      unit: "atoken per gas",
      help: "Lowest gas price that is signed, whatever the node suggests.",
    }),
    "price-cap-atoken": field.bigint({
      default: 100_000_000_000n,
      min: 1n,
      max: 10n ** 18n,
      unit: "atoken per gas",
      help: "Highest gas price of a payment, whatever the node suggests.",
    }),
    "fee-per-payout-max-atoken": field.bigint({
      default: 10n ** 17n,
      min: 1n,
      max: 10n ** 24n,
      unit: "atoken",
      help:
        "Most that the network fee of one payment may come to; beyond it a request waits, and nothing " +
        "is signed.",
    }),
    "fee-per-day-max-atoken": field.bigint({
      default: 10n ** 19n,
      min: 1n,
      max: 10n ** 26n,
      unit: "atoken",
      help: "Most that the payments of a UTC day may cost in network fees; beyond it requests wait.",
    }),
    "contracts-in-flight-gas": field.bigint({
      default: 4_000_000n,
      min: 0n,
      max: 10n ** 12n,
      unit: "gas",
      help: "Gas limits of payments to contracts on their way, summed; one alone may be above it.",
    }),
  },
  payouts: {
    "minimum-atoken": field.bigint({
      default: 0n,
      min: 0n,
      max: 10n ** 30n,
      unit: "atoken",
      help: "Smallest withdrawal of TOKEN; less is refused as BELOW_MINIMUM. 0 takes any.",
    }),
    "failure-fee-atoken": field.bigint({
      default: 0n,
      min: 0n,
      max: 10n ** 30n,
      unit: "atoken",
      help: "Charged to the customer whose payout was mined and failed, at most its amount.",
    }),
    "failures-max": field.integer({
      default: 100,
      min: 0,
      max: 1_000_000,
      help:
        "After so many payouts of a customer that failed on the chain in the window, further ones " +
        "to contracts are rejected; 0 never rejects.",
    }),
    "failures-window-ms": field.integer({
      default: 86_400_000,
      min: 1_000,
      max: 2_592_000_000,
      unit: "ms",
      help: "Window of failures-max.",
    }),
  },
  signer: {
    kind: field.choice({
      default: "keystore",
      values: ["keystore", "web3signer", "command"],
      help:
        "Who holds the hot wallet's key: this process (config/hot-wallet.json), Web3Signer, or a " +
        "program that asks hardware. With the last two, hot-wallet.json only names the address.",
    }),
    url: field.url({
      default: "",
      help: "JSON-RPC of Web3Signer; only eth_signTransaction is asked for.",
    }),
    command: field.list({
      default: [],
      help: "Program and arguments that sign digests over standard input and output, for hardware.",
    }),
    "timeout-ms": field.integer({
      default: 5_000,
      min: 100,
      max: 120_000,
      unit: "ms",
      help: "Longest wait for one signature; its end says nothing, and it is asked for again.",
    }),
  },
  treasury: {
    enabled: field.boolean({
      default: false,
      help:
        "Moves the exchange's own coins by section treasury of config/policy.json: sweeps of deposit " +
        "addresses (config/deposit.seed has to be there), gas for them, what goes to cold storage.",
    }),
    "scan-interval-ms": field.integer({
      default: 2_000,
      min: 50,
      max: 600_000,
      unit: "ms",
      help: "Time between two rounds of sweeps.",
    }),
    "sweeps-at-once": field.integer({
      default: 200,
      min: 1,
      max: 1_000,
      help: "Sweeps that are under way at once.",
    }),
  },
  worker: {
    "scan-interval-ms": field.integer({
      default: 1_000,
      min: 20,
      max: 2_000,
      unit: "ms",
      help: "Longest time between two looks at the tables: what a lost wake-up costs.",
    }),
    "poll-interval-ms": field.integer({
      default: 500,
      min: 20,
      max: 2_000,
      unit: "ms",
      help: "Time between two looks at the chain while payments are on their way.",
    }),
    "rebroadcast-interval-ms": field.integer({
      default: 5_000,
      min: 100,
      max: 600_000,
      unit: "ms",
      help: "Time after which a payment that the node's pool does not show is sent again.",
    }),
    "retry-delay-ms": field.integer({
      default: 2_000,
      min: 20,
      max: 600_000,
      unit: "ms",
      help: "Wait before a request that could not be estimated or covered is tried again.",
    }),
    "receipt-patience-ms": field.integer({
      default: 5_000,
      min: 100,
      max: 600_000,
      unit: "ms",
      help: "How long the receipt of a consumed nonce may be missing before signing freezes.",
    }),
    "lease-ms": field.integer({
      default: 3_000,
      min: 500,
      max: MAX_LEASE_MS,
      unit: "ms",
      help: "How long a worker that fell silent keeps the hot wallet.",
    }),
    "reprice-after-ms": field.integer({
      default: 30_000,
      min: 1_000,
      max: 86_400_000,
      unit: "ms",
      help:
        "Wait for the lowest open nonce before its transaction is replaced by a dearer one; and how often " +
        "what a node calls too cheap, naming no price, is made a tenth dearer.",
    }),
    "give-up-after-ms": field.integer({
      default: 600_000,
      min: 1_000,
      max: 86_400_000,
      unit: "ms",
      help:
        "Wait for it before a transfer of nothing takes the nonce and the withdrawal fails; and, where " +
        "its token refuses it and there are other hot wallets, from its acceptance on before it fails.",
    }),
    "stall-alarm-ms": field.integer({
      default: 60_000,
      min: 1_000,
      max: 86_400_000,
      unit: "ms",
      help: "Wait for it before /ready says that the lane does not move.",
    }),
    "batch-size": field.integer({
      default: 400,
      min: 1,
      max: 400,
      help: "Payments per database statement and per JSON-RPC batch.",
    }),
    "max-in-flight": field.integer({
      default: 4_096,
      min: 1,
      max: 8_192,
      help: "Open nonces at once; this chain's pool takes 8,192 of one sender.",
    }),
  },
});

/** Schema of `worker.toml`. */
export const workerConfigFile = Object.freeze({
  ...settings,
  combinationFaults: ({ node }: ConfigOf<typeof settings>) => secondNodeFaults(node),
});

/** Values of `worker.toml`. */
export type WorkerConfig = ConfigOf<typeof workerConfigFile>;

/** Settings of which each is right and both together mean nothing. */
export interface OddSettings {
  readonly code: "PRICE_FLOOR_ABOVE_CAP";
  readonly key: string;
  /** What they are, and which of them counts. */
  readonly value: string;
}

/** What contradicts itself and does not keep payments from being made: it is told, and not refused. */
export function oddSettings({ gas }: Pick<WorkerConfig, "gas">): readonly OddSettings[] {
  const [floor, cap] = [gas["price-floor-atoken"], gas["price-cap-atoken"]];
  if (floor <= cap) return [];
  const value = `${floor}, above gas.price-cap-atoken = ${cap}: every payment is signed at the cap`;
  return [{ code: "PRICE_FLOOR_ABOVE_CAP", key: "gas.price-floor-atoken", value }];
}
