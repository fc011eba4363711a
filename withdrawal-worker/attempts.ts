/** Signing: the first attempt of each slot, and corrected ones after a deterministic refusal. */
import {
  type NewAttempt,
  readLiveSlots,
  storeAttempts,
} from "../ledger/withdrawals/nonce-slots.js";
import { readFreeze } from "../ledger/withdrawals/signing-freeze.js";
import type { LiveSlot } from "../ledger/withdrawals/slot-rows.js";
import { failpoint } from "../runtime/process/failpoint.js";
import { WORKER_FAILPOINTS } from "./failpoints.js";
import { type AttemptGas, raiseGasLimit, raisePrice, estimateCeiling } from "./gas.js";
import type { LaneContext, Round } from "./lane-context.js";
import type { SendMeaning } from "./withdrawal-state.js";

/** Attempts of one slot; more means that something is wrong which a machine cannot mend. */
const MAX_ATTEMPTS = 32;

/** A slot whose latest attempt was refused for good. */
export interface RefusedAttempt {
  readonly slot: LiveSlot;
  readonly meaning: SendMeaning;
}

/** Signs every slot that has no attempt yet. @returns true when more may be waiting */
export async function signSlots(context: LaneContext, round: Round): Promise<boolean> {
  const { database, settings, signer } = context;
  if ((await readFreeze(database, signer.address)).frozen) return false;
  const slots = await readLiveSlots(database, {
    wallet: signer.address,
    statuses: ["slotted"],
    // A nonce that the chain has already used is never signed for: the settler looks at it.
    fromNonce: round.view.nonce,
    limit: settings.batchSize,
  });
  if (slots.length === 0) return false;
  const attempts = slots.map((slot) => signAttempt(context, slot, slot));
  failpoint(WORKER_FAILPOINTS.beforeAttemptCommit);
  const isStored = await storeAttempts(database, round.lease, attempts);
  failpoint(WORKER_FAILPOINTS.afterAttemptCommit);
  return isStored && slots.length === settings.batchSize;
}

/**
 * Signs the next attempt of slots whose latest one was refused for its price or gas. One that the
 * settings' limits forbid keeps its slot and waits.
 */
export async function correctAttempts(
  context: LaneContext,
  round: Round,
  refused: readonly RefusedAttempt[],
): Promise<void> {
  if (refused.length === 0) return;
  const estimates = await context.node.estimate(
    context.signer.address,
    refused.map(({ slot }) => ({ to: slot.destination, valueAtoken: slot.amountAtoken })),
    { signal: round.signal, gasMax: estimateCeiling(context.settings.gas) },
  );
  const attempts: NewAttempt[] = [];
  refused.forEach((entry, index) => {
    const meaning = estimates[index];
    const estimate = meaning?.kind === "payable" ? meaning.gas : undefined;
    const gas = correctedGas(context, round, entry, estimate);
    if (gas === undefined || entry.slot.attempts.length >= MAX_ATTEMPTS) {
      context.log.error(
        { withdrawalId: entry.slot.withdrawalId, refusal: entry.meaning.kind },
        "a refused payment cannot be corrected within the limits of gas and price",
      );
      return;
    }
    attempts.push(signAttempt(context, entry.slot, gas));
  });
  if (attempts.length === 0) return;
  const isStored = await storeAttempts(context.database, round.lease, attempts);
  if (isStored) context.log.info({ count: attempts.length }, "payments were signed anew");
  failpoint(WORKER_FAILPOINTS.afterCorrectionCommit);
}

/** Gas and price of the next attempt; undefined when no allowed value can help. */
function correctedGas(
  context: LaneContext,
  round: Round,
  { slot, meaning }: RefusedAttempt,
  estimate: bigint | undefined,
): AttemptGas | undefined {
  const { gas } = context.settings;
  const former = slot.attempts.at(-1) ?? slot;
  const { gasLimit, gasPriceAtoken } = former;
  if (meaning.kind === "price-too-low") {
    const suggestedAtoken = round.view.suggestedPriceAtoken;
    const wanted = { suggestedAtoken, neededAtoken: meaning.neededPriceAtoken };
    const raised = raisePrice(gasPriceAtoken, wanted, gas);
    return raised === undefined ? undefined : { gasLimit, gasPriceAtoken: raised };
  }
  if (meaning.kind === "gas-too-low") {
    const wanted = { estimate: estimate ?? gasLimit, needed: meaning.neededGas };
    const raised = raiseGasLimit(gasLimit, wanted, gas);
    return raised === undefined ? undefined : { gasLimit: raised, gasPriceAtoken };
  }
  if (meaning.kind === "gas-too-high" && estimate !== undefined && estimate < gasLimit) {
    return { gasLimit: estimate, gasPriceAtoken };
  }
  return undefined;
}

function signAttempt(context: LaneContext, slot: LiveSlot, gas: AttemptGas): NewAttempt {
  const signed = context.signer.sign({
    chainId: context.chainId,
    nonce: slot.nonce,
    to: slot.destination,
    valueAtoken: slot.amountAtoken,
    gasLimit: gas.gasLimit,
    gasPriceAtoken: gas.gasPriceAtoken,
  });
  return {
    slotId: slot.slotId,
    withdrawalId: slot.withdrawalId,
    n: slot.attempts.length,
    raw: signed.raw,
    hash: signed.hash,
    gasLimit: gas.gasLimit,
    gasPriceAtoken: gas.gasPriceAtoken,
    valueAtoken: slot.amountAtoken,
  };
}
