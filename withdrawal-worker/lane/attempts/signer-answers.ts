/**
 * What who signs has answered to the last that it was asked for: whether another worker is to try, and
 * whether the key may be lost behind it. Either changes only where somebody was asked.
 */
import { type KillSwitchState, stops } from "../../../ledger/kill-switch/kill-switch-level.js";
import type { WithdrawalStatus } from "../../../ledger/requests/withdrawal-status.js";
import type { LiveSlot } from "../../../ledger/withdrawals/slot-rows.js";
import type { Clock } from "../../../runtime/process/clock.js";
import type { Signer, SigningOutcome } from "../../signers/signer-port.js";
import type { LaneLedger } from "../lane-ledger.js";
import { hasCancel, OPEN_STATUSES } from "./stalled-slot.js";

/** States of slots that may wait for the first signature of a payment, or of a transfer of nothing. */
const UNSIGNED: readonly WithdrawalStatus[] = ["slotted", "cancelling"];

/** Whose answers they are, where its slots are looked for, and what stops it. */
interface Parts {
  readonly ledger: Pick<LaneLedger, "readLiveSlots" | "readFreeze">;
  readonly signer: Pick<Signer, "address" | "holdsKey" | "provesKey">;
  readonly hasKey: () => boolean;
  readonly killSwitch: { read(): Promise<Pick<KillSwitchState, "level">> };
  readonly settings: { readonly batchSize: number };
  readonly clock: Clock;
}

/** Between two texts that a signer is asked for who leaves them unanswered: each may take its time-out. */
const TEXT_INTERVAL_MS = 60_000;

/** What one lane remembers of its signer; a lane that starts knows nothing. */
export class SignerAnswers {
  readonly #parts: Parts;
  #isSilent = false;
  /** Whether the last that its holder was asked for was not answered; undefined before anything was. */
  #isKeyInDoubt: boolean | undefined;
  /** When it was last asked for a text. */
  #textMs: number | undefined;

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
   * Whether the lane may say that it has the key: coins go where somebody has it. Where the key lies in this
   * process it does. Whoever else holds it is believed until he leaves unanswered what he is asked for, and,
   * as he may have been silent before this process started, not before the first answer where it will ask
   * for a first signature. In doubt, where nothing is open that would ask, he is asked for a text.
   * @param nonce the wallet's on the chain
   */
  async maySayKey(nonce: bigint, options: { readonly signal: AbortSignal }): Promise<boolean> {
    const { hasKey, signer } = this.#parts;
    if (!hasKey()) return false;
    if (signer.holdsKey) return true;
    if (this.#isKeyInDoubt === true) await this.#askForText(nonce, options);
    if (this.#isKeyInDoubt !== undefined) return !this.#isKeyInDoubt;
    return !(await this.#isAnyUnsigned(nonce)) || (await this.#isStopped());
  }

  /**
   * Forgets a silence behind which nothing is open any more, so that the next payment asks: nothing else ever
   * would. The key stays in doubt: what has used these nonces may have been signed before it was lost.
   * @param nonce the wallet's on the chain
   */
  async forgetUsed(nonce: bigint): Promise<void> {
    if (this.#isSilent && !(await this.#isAnyOpen(nonce))) this.#isSilent = false;
  }

  /**
   * A text's signature ends a doubt like a payment's: without coins for one nothing else would ever be asked
   * for. Its time makes it another one each time, so that nobody answers by a former signature.
   */
  async #askForText(nonce: bigint, options: { readonly signal: AbortSignal }): Promise<void> {
    const { signer, clock } = this.#parts;
    const nowMs = clock.monotonicMs();
    const isEarly = nowMs - (this.#textMs ?? Number.NEGATIVE_INFINITY) < TEXT_INTERVAL_MS;
    if (signer.provesKey === undefined || isEarly) return;
    if ((await this.#isAnyOpen(nonce)) || (await this.#isStopped())) return;
    this.#textMs = nowMs;
    const time = new Date(clock.nowMs()).toISOString();
    const what = `Causeway asks whether the key of ${signer.address} is there, at ${time}.`;
    if (!(await signer.provesKey(`${what} This pays nobody.`, options))) return;
    this.#isSilent = false;
    this.#isKeyInDoubt = false;
  }

  async #isAnyOpen(nonce: bigint): Promise<boolean> {
    const { ledger, signer } = this.#parts;
    const wanted = { wallet: signer.address, statuses: OPEN_STATUSES, fromNonce: nonce, limit: 1 };
    return (await ledger.readLiveSlots(wanted)).length > 0;
  }

  async #isAnyUnsigned(nonce: bigint): Promise<boolean> {
    const { ledger, signer, settings } = this.#parts;
    const wanted = { wallet: signer.address, statuses: UNSIGNED, limit: settings.batchSize };
    for (let fromNonce = nonce; ; ) {
      const slots = await ledger.readLiveSlots({ ...wanted, fromNonce });
      if (slots.some(isUnsigned)) return true;
      const last = slots.at(-1);
      if (last === undefined || slots.length < wanted.limit) return false;
      fromNonce = last.nonce + 1n;
    }
  }

  /** Nobody is asked for anything, by the kill switch or for an incident: there will be no answer. */
  async #isStopped(): Promise<boolean> {
    const { ledger, signer, killSwitch } = this.#parts;
    if (stops((await killSwitch.read()).level, "stop-sign")) return true;
    return (await ledger.readFreeze(signer.address)).frozen;
  }
}

/** Whether the next signature for an open slot is the first of its kind: without it nothing is to be sent. */
function isUnsigned(slot: LiveSlot): boolean {
  return slot.status === "cancelling" ? !hasCancel(slot) : slot.attempts.length === 0;
}

/**
 * Whether slots that are taken would wait, too: the signer would say the same about any other payment, or
 * another home's is to sign this one, which allows more in fees: it has taken the nonce.
 */
function saysNothing(outcome: SigningOutcome): boolean {
  if (outcome.kind === "unanswered") return true;
  return outcome.kind === "refused" && !outcome.isLasting && outcome.code !== "DAY_TOTAL";
}
