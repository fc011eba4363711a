/** Signers with rules of a test's own, and how they answer. */
import { SWITCH_UNTOUCHED } from "../../../../ledger/kill-switch/kill-switch-level.js";
import type { SignerRules } from "../../../../withdrawal-worker/signers/policy-signer.js";
import { createKeyHolder } from "../../../../withdrawal-worker/signers/keystore-holder.js";
import type {
  SigningIntent,
  SigningOutcome,
} from "../../../../withdrawal-worker/signers/signer-port.js";
import { PERMISSIVE, type RuleFiles, signerOver } from "../../../helpers/keys/signing.js";
import { KEY, LIMITS } from "./intents.js";

const { signal } = new AbortController();

/** One with these files and rules, and the usual ones besides. */
export function open(files: Partial<RuleFiles> = {}, rules: Partial<SignerRules> = {}) {
  const all: RuleFiles = { policy: PERMISSIVE, killSwitch: SWITCH_UNTOUCHED, ...files };
  const chainId = rules.chainId ?? 6940n;
  return signerOver(createKeyHolder(KEY), { limits: LIMITS, ...rules, chainId }, all);
}

/** What became of each intent, refusals by their code. */
export const codes = (outcomes: readonly SigningOutcome[]) =>
  outcomes.map((outcome) => (outcome.kind === "refused" ? outcome.code : outcome.kind));

/** The same of intents that a signer is asked for at once. */
export const signed = async (
  signer: ReturnType<typeof open>,
  ...intents: readonly SigningIntent[]
): Promise<readonly string[]> => codes(await signer.sign(intents, { signal }));
