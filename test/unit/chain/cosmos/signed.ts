/** Transactions that CosmJS signed for one wallet, and changed ones made of them. */
import { Wallet } from "ethers";
import { parseAddress, toBech32 } from "../../../../chain/address.js";
import { signatureFault, staticCosmosFault } from "../../../../chain/cosmos/ante.js";
import {
  type CosmosTransaction,
  decodeCosmosTransaction,
} from "../../../../chain/cosmos/cosmos-transaction.js";
import { ProtoWriter } from "../../../../chain/protobuf/wire.js";
import { type CosmJsMessage, signWithCosmJs } from "../../../helpers/cosmos/cosmjs.js";

/** The wallet that signs all of them, of the phrase that development chains use. */
export const MNEMONIC = "test test test test test test test test test test test junk";

/** What the chain of these transactions allows, and how it is called. */
export const LIMITS = {
  cosmosChainId: "chain_6940-1",
  chainId: 6940n,
  maxTransactionGas: 30_000_000n,
};

const wallet = Wallet.fromPhrase(MNEMONIC);
/** The key of the wallet, for signatures that CosmJS does not make. 32 bytes. */
export const privateKey = Buffer.from(wallet.privateKey.slice(2), "hex");
/** The wallet, bech32. */
export const sender = toBech32(parseAddress(wallet.address));
/** Somebody else, bech32. */
export const receiver = toBech32(parseAddress("0x70997970C51812dc3A010C7d01b50e0d17dc79C8"));

/** A message that sends `amount` atoken to the receiver. */
export const send = (amount = "7", from = sender): CosmJsMessage => ({
  typeUrl: "/cosmos.bank.v1beta1.MsgSend",
  value: { fromAddress: from, toAddress: receiver, amount: [{ denom: "atoken", amount }] },
});

/** What a test asks of CosmJS; the rest is a plain transfer on the chain of `LIMITS`. */
export type Options = Partial<Parameters<typeof signWithCosmJs>[1][number]>;

/** Transactions that CosmJS signed, decoded by us; one process signs them all. */
export function readAll(...options: readonly Options[]): CosmosTransaction[] {
  const requests = options.map((one) => ({
    messages: [send()],
    chainId: LIMITS.cosmosChainId,
    ...one,
  }));
  return signWithCosmJs(MNEMONIC, requests).map(({ raw: bytes }) => decodeCosmosTransaction(bytes));
}

/** One transaction that CosmJS signed, decoded by us. */
export function read(options: Options = {}): CosmosTransaction {
  const [tx] = readAll(options);
  if (tx === undefined) throw new Error("nothing was signed");
  return tx;
}

/** For typed data that must be there. */
export function raise(): never {
  throw new Error("there is no typed data");
}

/** What is wrong with a transaction before state is asked, its signature included. */
export const faultOf = (tx: CosmosTransaction) =>
  staticCosmosFault(tx, LIMITS) ?? signatureFault(tx, LIMITS);

interface RawParts {
  readonly bodyBytes: Uint8Array;
  readonly authInfoBytes: Uint8Array;
  readonly signatures: readonly Uint8Array[];
}

/** The bytes of a transaction with some of its parts exchanged. */
export function raw(parts: Partial<RawParts>, of: CosmosTransaction): Uint8Array {
  const writer = new ProtoWriter()
    .bytes(1, parts.bodyBytes ?? of.bodyBytes)
    .bytes(2, parts.authInfoBytes ?? of.authInfoBytes);
  for (const one of parts.signatures ?? [of.signature]) writer.message(3, one);
  return writer.finish();
}
