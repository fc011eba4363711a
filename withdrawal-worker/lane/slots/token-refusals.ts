/** Whether a token refuses a destination, or this wallet whomever it pays. */
import type { LaneContext, Round } from "../lane-context.js";
import { hasOthers } from "./other-payers.js";
import type { PaymentEstimate } from "../wallet-node.js";
import type { EstimateMeaning } from "../../withdrawal-state.js";

/**
 * What is made of an estimate. The token may be paused or have the wallet blacklisted, which passes, or does
 * not keep another wallet from paying.
 */
export type Judgement = EstimateMeaning | Refusal;

/** A token refuses a payment, and the same to the wallet itself. */
export interface Refusal {
  readonly kind: "refused-by-token";
  /** What it says to the payment. */
  readonly reason: string;
  /** What it says to the same to the wallet itself: one that lets nobody pay himself always refuses that. */
  readonly toItself: string;
  /** Another wallet may be let transfer. */
  readonly hasOthers: boolean;
}

/** A payment that the wallet covers, and why its estimate was refused. */
interface RefusedPayment {
  readonly payment: PaymentEstimate;
  readonly reason: string;
}

/**
 * Asks whether the wallet could transfer as much to itself: no destination has a part in that. Each amount of
 * a token is one question, all in one exchange, within the time of one call of estimates; coins are not
 * asked about.
 * @returns for those whose destination is not known to be the cause, what is said instead; undefined where
 * there was no time
 */
export async function judgeTokens(
  { node, signer, settings, ledger }: LaneContext,
  { view, signal }: Round,
  refused: readonly RefusedPayment[],
): Promise<ReadonlyMap<PaymentEstimate, Judgement | undefined>> {
  const alike = new Map<string, { toItself: PaymentEstimate; payments: RefusedPayment[] }>();
  for (const entry of refused) {
    const { payment } = entry;
    const { to, transfer } = payment;
    if (transfer === undefined) continue;
    const key = `${to} ${transfer.amountUnits}`;
    const known = alike.get(key);
    const toItself = { ...payment, transfer: { ...transfer, to: signer.address } };
    if (known === undefined) alike.set(key, { toItself, payments: [entry] });
    else known.payments.push(entry);
  }
  const groups = [...alike.values()];
  if (groups.length === 0) return new Map();
  const questions = groups.map(({ toItself }) => toItself);
  const options = { signal, at: view.height, perCall: settings.batchSize };
  const meanings = await node.estimate(signer.address, questions, options);
  const isRefused = meanings.some((meaning) => meaning?.kind === "refused-by-destination");
  const mayLeave = isRefused && (await hasOthers({ ledger, signer }));
  return new Map(
    groups.flatMap(({ payments }, index) => {
      const meaning = meanings[index];
      if (meaning?.kind === "payable") return [];
      return payments.map(
        ({ payment, reason }) => [payment, ofToken(meaning, { reason, mayLeave })] as const,
      );
    }),
  );
}

function ofToken(
  meaning: EstimateMeaning | undefined,
  { reason, mayLeave }: { readonly reason: string; readonly mayLeave: boolean },
): Judgement | undefined {
  if (meaning?.kind !== "refused-by-destination") return meaning;
  const toItself = meaning.reason;
  return { kind: "refused-by-token", reason, toItself, hasOthers: mayLeave };
}
