/** Funded accounts and their signed transactions, made before a clock starts. */
import { type Address } from "../../chain/address.js";
import { privateKeyToAddress } from "../../chain/signing/account-key.js";
import { sha256 } from "../../chain/hashes.js";
import { bytesToHex } from "../../chain/hex.js";
import { NETWORKS } from "../../chain/networks.js";
import { signLegacy } from "../../chain/transaction.js";
import { encodeRequest } from "./http-load.js";
import type { Wire } from "./wires.js";

/** Chain id of both chains under test. */
export const CHAIN_ID = NETWORKS.testnet.evmChainId;

/** Price of every transaction; above the pool's floor, and what `eth_gasPrice` suggests. */
export const GAS_PRICE_ATOKEN = 25_000_000n;

/** Gas of a plain transfer. */
const TRANSFER_GAS = 21_000n;

/** An account that signs. */
export interface Sender {
  readonly address: Address;
  readonly privateKey: Uint8Array;
  nextNonce: bigint;
}

/** What a transaction does; a transfer of 1 atoken unless it carries data. */
export interface Payment {
  readonly to: Address | undefined;
  readonly valueAtoken?: bigint;
  readonly data?: Uint8Array;
  readonly gasLimit?: bigint;
}

/** The same accounts in every run. */
export function createSenders(count: number, label: string): Sender[] {
  return Array.from({ length: count }, (_, index) => {
    const privateKey = sha256(Buffer.from(`causeway bench ${label} ${index}`));
    return { address: privateKeyToAddress(privateKey), privateKey, nextNonce: 0n };
  });
}

/** Addresses nobody has a key to, to pay to. */
export function createRecipients(count: number): Address[] {
  return Array.from({ length: count }, (_, index) => {
    const digest = sha256(Buffer.from(`causeway bench recipient ${index}`));
    return bytesToHex(digest.subarray(0, 20)) as Address;
  });
}

/** Signs the sender's next transaction. */
export function signNext(sender: Sender, payment: Payment): Uint8Array {
  const raw = signLegacy(
    {
      chainId: CHAIN_ID,
      nonce: sender.nextNonce,
      gasPriceAtoken: GAS_PRICE_ATOKEN,
      gasLimit: payment.gasLimit ?? TRANSFER_GAS,
      to: payment.to,
      valueAtoken: payment.valueAtoken ?? 1n,
      data: payment.data ?? new Uint8Array(0),
    },
    sender.privateKey,
  );
  sender.nextNonce += 1n;
  return raw;
}

/** One HTTP request that sends all transactions, as the bytes on the wire. */
export function encodeBatch(url: string, raws: readonly Uint8Array[]): Buffer {
  const calls = raws.map((raw, id) => {
    const hex = bytesToHex(raw);
    return `{"jsonrpc":"2.0","id":${id},"method":"eth_sendRawTransaction","params":["${hex}"]}`;
  });
  return encodeRequest(url, { body: `[${calls.join(",")}]` });
}

/** A batch of transactions for one connection. */
export interface Batch {
  readonly bytes: Buffer;
  readonly count: number;
}

/** What batches are made of. */
export interface BatchPlan {
  readonly url: string;
  readonly senders: readonly Sender[];
  readonly count: number;
  readonly wire: Pick<Wire, "batchSize" | "sign" | "encode">;
  readonly connections: number;
  readonly payment: (index: number, sender: Sender) => Payment;
}

/**
 * Batches per connection, in order. Each sender belongs to one connection, so that no nonce can
 * overtake another on the way.
 */
export function createBatches(plan: BatchPlan): Batch[][] {
  const { url, senders, connections } = plan;
  const { batchSize, sign, encode } = plan.wire;
  const lanes: Batch[][] = Array.from({ length: connections }, () => []);
  let index = 0;
  for (let lane = 0; index < plan.count; lane = (lane + 1) % connections) {
    const own = senders.filter((_, position) => position % connections === lane);
    const raws: Uint8Array[] = [];
    for (let turn = 0; turn < batchSize && index < plan.count; turn += 1, index += 1) {
      const sender = own[turn % own.length];
      if (sender !== undefined) raws.push(sign(sender, plan.payment(index, sender)));
    }
    lanes[lane]?.push({ bytes: encode(url, raws), count: raws.length });
  }
  return lanes;
}
