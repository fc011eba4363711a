/** Steps of a construction session as tests take them: intents, requests, signatures. */
import { getAddress, SigningKey, Wallet } from "ethers";
import { CURRENCY, type WireCurrency } from "../../../helpers/chains/known-tokens.js";
import type { ReplyPayload } from "../replies.js";

export const WALLET = new Wallet(`0x${"11".repeat(32)}`);
export const KEY = new SigningKey(WALLET.privateKey);
export const RECIPIENT = getAddress("0xfb6916095ca1df60bb79ce92ce3ea74c37c5d359");

export const FACTS = {
  chain_id: "6940",
  nonce: "7",
  gas_price: "25000000",
  gas_limit: "25200",
  data: "0x",
};

/** An intent as two operations, the payer first. */
export function pair(from: string, to: string, value: bigint, currency: WireCurrency = CURRENCY) {
  const type = currency.metadata ? "ERC20_TRANSFER" : "CALL";
  return [
    {
      operation_identifier: { index: 0 },
      type,
      account: { address: from },
      amount: { value: (-value).toString(), currency },
    },
    {
      operation_identifier: { index: 1 },
      related_operations: [{ index: 0 }],
      type,
      account: { address: to },
      amount: { value: value.toString(), currency },
    },
  ];
}

/** Calldata of an ERC-20 transfer, written by hand. */
export function transferData(to: string, units: bigint): string {
  const word = (hex: string) => hex.padStart(64, "0");
  return `0xa9059cbb${word(to.slice(2).toLowerCase())}${word(units.toString(16))}`;
}

/** A signature as a signer outside makes it. */
export function signatureOf(key: SigningKey, payload: ReplyPayload) {
  const signature = key.sign(`0x${payload.hex_bytes}`);
  return {
    signing_payload: payload,
    public_key: { hex_bytes: key.compressedPublicKey.slice(2), curve_type: "secp256k1" },
    signature_type: "ecdsa_recovery",
    hex_bytes: `${signature.r.slice(2)}${signature.s.slice(2)}0${signature.yParity}`,
  };
}
