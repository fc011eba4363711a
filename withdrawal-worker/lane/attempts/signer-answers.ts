/**
 * What who signs has answered to the last that it was asked for: whether another worker is to try, and
 * whether the key may be lost behind it. Either changes only where somebody was asked.
 */
import type { Address } from "../../../chain/address.js";
import type { WithdrawalStatus } from "../../../ledger/requests/withdrawal-status.js";
import type { SigningOutcome } from "../../signers/signer-port.js";
import type { LaneLedger } from "../lane-ledger.js";
import { OPEN_STATUSES } from "./stalled-slot.js";

/** States of slots that may wait for a signature before anything can be sent for them. */
const UNSIGNED: readonly WithdrawalStatus[] = ["slotted", "cancelling"];

/** Whose answers they are, and where its slots are looked for. */
interface Parts {
  readonly ledger: Pick<LaneLedger, "readLiveSlots">;
  readonly signer: { readonly address: Address };
  readonly hasKey: () => boolean;
}

/** What one lane remembers of its signer; a lane that starts knows nothing. */
export class SignerAnswers {
  readonly #parts: Parts;
  #isSilent = false;
  /** Whether the last that its holder was asked for was not answered; undefined before anything was. */
  #isKeyInDoubt: boolean | undefined;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Another worker may be able to sign: slots that are taken would wait with those that were asked for. */
  get isSilent(): boolean {
    return this.#isSilent;
  }

  /**
   * Takes down what became of what was asked for. A signature ends silence and doubt, whatever it was for.
   * @param options.isFirst first signatures of payments, which are asked for again in each round. Whatever
   *   else is not answered may never be asked for again: it raises the doubt alone, as a silence would last
   */
  note(outcomes: readonly SigningOutcome[], { isFirst }: { readonly isFirst: boolean }): void {
    if (outcomes.length === 0) return;
    const isUnanswered = outcomes.some(({ kind }) => kind === "unanswered");
    const isSigned = !isUnanswered && outcomes.some(({ kind }) => kind === "signed");
    if (isFirst) this.#isSilent = outcomes.some(saysNothing);
    else if (isSigned) this.#isSilent = false;
    if (isUnanswered) this.#isKeyInDoubt = true;
    else if (isSigned) this.#isKeyInDoubt = false;
    // Rules come before the key: what they refuse raises no doubt of it, and takes none away.
    else this.#isKeyInDoubt ??= false;
  }

  /**
   * Whether the lane may say that it has the key: coins go where somebody has it. Not while who signs leaves
   * unanswered what it is asked for, and not before the first answer where something waits for one: it may
   * have been silent before this process started.
   * @param nonce the wallet's on the chain
   */
  async maySayKey(nonce: bigint): Promise<boolean> {
    if (!this.#parts.hasKey()) return false;
    if (this.#isKeyInDoubt !== undefined) return !this.#isKeyInDoubt;
    return !(await this.#isAny(UNSIGNED, nonce));
  }

  /**
   * Forgets a silence behind which nothing is open any more, so that the next payment asks: nothing else ever
   * would. The key stays in doubt: what has used these nonces may have been signed before it was lost.
   * @param nonce the wallet's on the chain
   */
  async forgetUsed(nonce: bigint): Promise<void> {
    if (!this.#isSilent || (await this.#isAny(OPEN_STATUSES, nonce))) return;
    this.#isSilent = false;
  }

  async #isAny(statuses: readonly WithdrawalStatus[], fromNonce: bigint): Promise<boolean> {
    const { ledger, signer } = this.#parts;
    const wallet = signer.address;
    return (await ledger.readLiveSlots({ wallet, statuses, fromNonce, limit: 1 })).length > 0;
  }
}

/**
 * Whether slots that are taken would wait, too: the signer would say the same about any other payment, or
 * another home's is to sign this one, which allows more in fees: it has taken the nonce.
 */
function saysNothing(outcome: SigningOutcome): boolean {
  if (outcome.kind === "unanswered") return true;
  return outcome.kind === "refused" && !outcome.isLasting && outcome.code !== "DAY_TOTAL";
}
