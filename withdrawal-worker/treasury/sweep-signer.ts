/**
 * Signs sweeps: the keys of deposit addresses behind rules of their own. Whatever asks, coins leave
 * a deposit address only for a hot wallet of this home, within the policy's fee, while the kill
 * switch allows it; the bytes are held against the intent before anybody stores them.
 */
import type { Address } from "../../chain/address.js";
import { AppError, errorMessage } from "../../chain/errors.js";
import { decodeTransfer } from "../../chain/evm/erc20.js";
import { bytesToHex } from "../../chain/hex.js";
import type { AddressDerivation } from "../../chain/derivation/address-derivation.js";
import type { DepositKeys } from "../../chain/derivation/deposit-keys.js";
import { privateKeyToAddress } from "../../chain/signing/account-key.js";
import { buildAndSign } from "../../chain/signing/legacy-transaction.js";
import { NATIVE_ASSET, TREASURY } from "../../ledger/journal/accounts.js";
import { type KillSwitchState, stops } from "../../ledger/kill-switch/kill-switch-level.js";
import type { HashedPolicy } from "../../ledger/policy/policy.js";
import { feeOf } from "../../ledger/withdrawals/slot-choice.js";
import { checkSigned, type SigningLimits } from "../signers/check-signed.js";
import { type SignedPayment, type TransactionIntent, unlisted } from "../signers/signer-port.js";

/** A sweep's transaction, and what it has to mean. */
export interface SweepIntent extends TransactionIntent {
  readonly address: Address;
  /** Index of the address' key. */
  readonly index: number;
  readonly asset: string;
  readonly wallet: Address;
  /** Units of a token; of coins the value says it. */
  readonly amountUnits: bigint;
}

/** What the rules are read from; each is looked at anew before every use. */
export interface SweepRules {
  readonly chainId: bigint;
  readonly limits: SigningLimits;
  /** @throws ConfigError */
  readonly readPolicy: () => HashedPolicy;
  /** @throws KILL_SWITCH_UNREADABLE */
  readonly readKillSwitch: () => KillSwitchState;
  /** Hot wallets whose keystores lie in this home. */
  readonly wallets: () => readonly Address[];
  readonly contractOf: (asset: string) => Address | undefined;
}

/** Signed, or the reason why not. */
export type SweepSignature = SignedPayment | { readonly kind: "refused"; readonly reason: string };

/** Signs for the deposit addresses of one home. */
export class SweepSigner {
  readonly #keys: DepositKeys;
  readonly #derivation: AddressDerivation;
  readonly #rules: SweepRules;

  /** @param derivation of the same keys, on its own paths: both have to name an address */
  constructor(keys: DepositKeys, derivation: AddressDerivation, rules: SweepRules) {
    this.#keys = keys;
    this.#derivation = derivation;
    this.#rules = rules;
  }

  /** Address of an index; see `AddressDerivation`. */
  addressAt(index: number): Address {
    return this.#derivation.addressAt(index);
  }

  /**
   * Whether sweeps of an asset can be signed for here: coins, or a token that this process' list names by the
   * very contract.
   */
  isListed(asset: string, contract: Address | undefined): boolean {
    return contract === undefined || this.#rules.contractOf(asset) === contract;
  }

  /** Signs one sweep; the same intent gives the same bytes. */
  sign(intent: SweepIntent): SweepSignature {
    try {
      const refusal = this.#refusalOf(intent);
      if (refusal !== undefined) return { kind: "refused", reason: refusal };
      const key = this.#keys.privateKeyAt(intent.index);
      const isKeyOfBoth =
        privateKeyToAddress(key) === intent.address &&
        this.#derivation.addressAt(intent.index) === intent.address;
      if (!isKeyOfBoth) return { kind: "refused", reason: "the seed has another key there" };
      const { raw } = buildAndSign(intent, key);
      const terms = {
        kind: "payment" as const,
        withdrawalId: "",
        customerId: TREASURY,
        destination: intent.wallet,
      };
      return checkSigned(
        raw,
        { ...intent, ...terms },
        { ...this.#rules.limits, signer: intent.address },
      );
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      return { kind: "refused", reason: errorMessage(error) };
    }
  }

  #refusalOf(intent: SweepIntent): string | undefined {
    const { level, reason } = this.#rules.readKillSwitch();
    if (stops(level, "stop-sign")) return `kill switch ${level}: ${reason}`;
    const rules = this.#rules.readPolicy().policy.treasury?.assets.get(intent.asset);
    if (rules === undefined) return `the policy's treasury does not name ${intent.asset}`;
    if (!this.#rules.wallets().includes(intent.wallet)) return "it goes to no wallet of this home";
    if (intent.chainId !== this.#rules.chainId) return "it is for another chain";
    if (feeOf(intent) > rules.sweepFeeMaxAtoken) return "its fee is above the policy's";
    const { asset } = intent;
    if (asset !== NATIVE_ASSET && this.#rules.contractOf(asset) === undefined)
      return unlisted(asset);
    return this.#meansWhatItSays(intent) ? undefined : "it does something else than a sweep";
  }

  #meansWhatItSays({ to, valueAtoken, data, asset, wallet, amountUnits }: SweepIntent): boolean {
    if (asset === NATIVE_ASSET) return to === wallet && valueAtoken > 0n && data.length === 0;
    const transfer = decodeTransfer(bytesToHex(data));
    return (
      to === this.#rules.contractOf(asset) &&
      valueAtoken === 0n &&
      transfer?.to === wallet &&
      transfer.amountUnits === amountUnits
    );
  }
}
