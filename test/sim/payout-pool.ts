/** A chain with a pool, in memory: what a node knows of one hot wallet, and what it would answer. */
import type { Address } from "../../chain/address.js";
import { type Hash32, ZERO_HASH } from "../../chain/hex.js";
import type { NodeReceipt } from "../../rpc-client/transaction-codec.js";
import { RpcError } from "../../rpc-client/errors.js";
import type { SendOutcome } from "../../rpc-client/evm-client.js";
import type {
  SignedPayment,
  Signer,
  SigningIntent,
  TransactionIntent,
} from "../../withdrawal-worker/signers/signer-port.js";
import type { PaymentEstimate, WalletView } from "../../withdrawal-worker/lane/wallet-node.js";
import type { EstimateMeaning } from "../../withdrawal-worker/withdrawal-state.js";

/** What a destination does. */
export type Nature =
  | "plain"
  | "code"
  | "refuses"
  /** Estimates near the node's limit once, and reverts from then on. */
  | "greedy"
  /** Takes coins at estimate and fails when it is mined. */
  | "fails"
  /** Stays in the pool: no block ever takes a payment to it. */
  | "unmined";

/** Natures that a random destination may have, plain ones more often. */
export const NATURES: readonly Nature[] = [
  "plain",
  "plain",
  "plain",
  "code",
  "refuses",
  "greedy",
  "fails",
  "unmined",
];

const CODE_GAS = 200_000n;
const GREEDY_GAS = 380_000n;

/** Most gas of a transaction; the node does not name it, so the worker finds out by refusals. */
export const NODE_GAS_LIMIT = 400_000n;

/** What a transaction of the model says. */
type ModelIntent = Omit<TransactionIntent, "data">;

/** A mined transaction. */
export interface Mined {
  readonly intent: ModelIntent;
  readonly hash: Hash32;
  readonly height: number;
  readonly isSuccess: boolean;
}

/** Signs by counting: the model knows what each of its hashes means. */
export function createModelSigner(address: Address): Signer & {
  readonly intentOf: ReadonlyMap<string, ModelIntent & { readonly hash: Hash32 }>;
} {
  const intentOf = new Map<string, ModelIntent & { readonly hash: Hash32 }>();
  const known = new Map<string, SignedPayment>();
  const signOne = (intent: SigningIntent): SignedPayment => {
    // The same intent is the same bytes, as with RFC 6979.
    const key = Object.values(intent).join(" ");
    const before = known.get(key);
    if (before !== undefined) return before;
    const number = (intentOf.size + 1).toString(16);
    const hash = `0x${number.padStart(64, "0")}` as Hash32;
    const signed: SignedPayment = { kind: "signed", raw: `0x${number.padStart(8, "0")}`, hash };
    known.set(key, signed);
    intentOf.set(signed.raw, { ...intent, hash });
    return signed;
  };
  return {
    address,
    intentOf,
    sign: async (intents) => intents.map(signOne),
    review: (payments) => payments.map(() => undefined),
    trouble: () => undefined,
  };
}

/** The chain of the model. */
export class ModelChain {
  readonly mined: Mined[] = [];
  height = 1;
  nonce = 0n;
  balanceAtoken = 10n ** 24n;
  floorAtoken = 1n;
  suggestedAtoken = 25n;
  /** A node that does not keep what it is sent. */
  isForgetful = false;
  /** Receipts of newer blocks are not told yet: a node's indexes may lag. */
  toldHeight = Number.POSITIVE_INFINITY;
  readonly natures = new Map<Address, Nature>();
  readonly #pool = new Map<bigint, ModelIntent & { readonly hash: Hash32 }>();
  readonly #receipts = new Map<Hash32, NodeReceipt>();
  readonly #seenGreedy = new Set<Address>();

  constructor(readonly wallet: Address) {}

  view(): WalletView {
    let pendingNonce = this.nonce;
    while (this.#pool.has(pendingNonce)) pendingNonce += 1n;
    return {
      height: this.height,
      blockHash: ZERO_HASH,
      balanceAtoken: this.balanceAtoken,
      nonce: this.nonce,
      pendingNonce,
      suggestedPriceAtoken: this.suggestedAtoken,
      maxTransactionGas: undefined,
    };
  }

  natureOf(address: Address): Nature {
    return this.natures.get(address) ?? "plain";
  }

  estimate({ to, gasMax }: PaymentEstimate): EstimateMeaning {
    const nature = this.natureOf(to);
    if (nature === "refuses") return { kind: "refused-by-destination", reason: "no" };
    if (nature === "greedy") {
      if (this.#seenGreedy.has(to)) return { kind: "refused-by-destination", reason: "no more" };
      this.#seenGreedy.add(to);
      return { kind: "payable", gas: GREEDY_GAS };
    }
    const gas = nature === "code" || nature === "fails" ? CODE_GAS : 21_000n;
    return gas > gasMax
      ? { kind: "refused-by-destination", reason: "gas required exceeds allowance" }
      : { kind: "payable", gas };
  }

  /** Takes bytes into the pool, or refuses them as a node does. */
  submit(tx: ModelIntent & { readonly hash: Hash32 }): SendOutcome {
    const refused = (nodeMessage: string): SendOutcome => ({
      outcome: "refused",
      error: new RpcError(nodeMessage, { rpcCode: -32_000, method: "eth_sendRawTransaction" }),
    });
    if (tx.nonce < this.nonce) return refused("nonce too low");
    if (tx.gasPriceAtoken < this.floorAtoken) {
      return refused(`transaction underpriced: minimum needed ${this.floorAtoken}`);
    }
    if (tx.gasLimit > NODE_GAS_LIMIT) return refused("exceeds block gas limit");
    const known = this.#pool.get(tx.nonce);
    if (known?.hash === tx.hash) return refused("already known");
    if (known !== undefined && tx.gasPriceAtoken * 10n < known.gasPriceAtoken * 11n) {
      return refused("replacement transaction underpriced");
    }
    if (!this.isForgetful) this.#pool.set(tx.nonce, tx);
    return { outcome: "accepted", hash: tx.hash };
  }

  /** A block with at most so many of the wallet's transactions. */
  mine(most: number): void {
    this.height += 1;
    for (let count = 0; count < most; count++) {
      const tx = this.#pool.get(this.nonce);
      if (tx === undefined || this.natureOf(tx.to) === "unmined") return;
      this.#pool.delete(this.nonce);
      this.#execute(tx);
    }
  }

  dropPool(): void {
    this.#pool.clear();
  }

  receipt(hash: Hash32): NodeReceipt | undefined {
    const receipt = this.#receipts.get(hash);
    return receipt !== undefined && receipt.height <= this.toldHeight ? receipt : undefined;
  }

  blockHash(height: number): Hash32 {
    return `0x${height.toString(16).padStart(64, "b")}` as Hash32;
  }

  #execute(tx: ModelIntent & { readonly hash: Hash32 }): void {
    const isSuccess = this.natureOf(tx.to) !== "fails";
    const gasUsed = 21_000n;
    this.nonce += 1n;
    this.balanceAtoken -= gasUsed * tx.gasPriceAtoken;
    if (isSuccess && tx.to !== this.wallet) this.balanceAtoken -= tx.valueAtoken;
    this.mined.push({ intent: tx, hash: tx.hash, height: this.height, isSuccess });
    this.#receipts.set(tx.hash, {
      transactionHash: tx.hash,
      blockHash: this.blockHash(this.height),
      height: this.height,
      from: this.wallet,
      status: isSuccess ? 1 : 0,
      gasUsed,
      effectiveGasPriceAtoken: tx.gasPriceAtoken,
    } as NodeReceipt);
  }
}
