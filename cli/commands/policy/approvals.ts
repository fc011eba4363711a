/** `causeway withdrawals approve|reject`: a person's word about a withdrawal that waits for it. */
import { createPrivateKey, createPublicKey, sign } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Address } from "../../../chain/address.js";
import { atokenToToken } from "../../../chain/units.js";
import {
  type ApprovalDecision,
  approvalDigest,
  type ApprovalSignature,
  approvalText,
  type ApprovedTerms,
} from "../../../ledger/policy/approval-digest.js";
import { countingApprovals } from "../../../ledger/policy/approval-rows.js";
import { type ApprovalOutcome, decideWithdrawal } from "../../../ledger/policy/approvals.js";
import { hashPolicy, PERMISSIVE_POLICY } from "../../../ledger/policy/policy.js";
import { readActivePolicy } from "../../../ledger/policy/policy-store.js";
import { closeIfBehind } from "../../../ledger/guard/ledger-guard.js";
import { toWithdrawalId } from "../../../ledger/requests/withdrawal-id.js";
import { findWithdrawal } from "../../../ledger/withdrawals/withdrawals.js";
import { CliError, fileCause } from "../../errors.js";
import { lookBeforeEnding } from "../../ledger/chain-look.js";
import { withLedgerAlone } from "../../ledger/ledger-alone.js";
import { operatorName, readApiReason } from "../ledger-decisions.js";
import { toJson } from "../../command-context.js";
import type { LedgerCommand } from "../../ledger/ledger-tools.js";

/** Flags, as typed. */
export interface ApprovalOptions {
  readonly reason: string;
  readonly operator?: string;
  /** PEM file with an Ed25519 key of one of the policy's approvers. */
  readonly signingKey?: string;
}

const SENTENCES: Readonly<Record<ApprovalOutcome, string>> = {
  done: "written down",
  unknown: "no withdrawal has this id",
  "not-pending": "it does not wait for approvals",
  "own-request": "who asked for a withdrawal cannot approve it",
  "said-otherwise":
    "this operator, key or person has decided about it already: --operator says who",
  "signature-needed": "the policy wants signed approvals: --signing-key",
  "bad-signature": "the key is none of the policy's approvers",
  "policy-changed": "the policy has changed: look at the withdrawal again in a moment",
};

/**
 * Says yes or no to a withdrawal.
 * @returns 0, or 1 when it was not taken
 */
export async function runDecideWithdrawal(
  command: LedgerCommand,
  options: ApprovalOptions & { readonly id: string; readonly decision: ApprovalDecision },
): Promise<number> {
  const { decision, signingKey } = options;
  const reason = readApiReason(options.reason);
  const id = toWithdrawalId(options.id);
  const keyId = `operator:${operatorName(options.operator)}`.slice(0, 100);
  return withLedgerAlone(command, async ({ database, identity }) => {
    const { chainId } = identity;
    await closeIfBehind(database, command.home);
    if (decision === "reject") await lookBeforeEnding(command, { database, identity }, id);
    // The one in force, and not this home's file: a home apart from the worker's may have an older copy.
    // Where nobody has decided on one, no withdrawal waits for persons, and none is approved.
    const policy = (await readActivePolicy(database)) ?? hashPolicy(PERMISSIVE_POLICY);
    const before = await findWithdrawal(database, id);
    const signed =
      signingKey === undefined || before === undefined
        ? undefined
        : signTerms(signingKey, termsOf(before, chainId), { policyHash: policy.hash, decision });
    const outcome = await decideWithdrawal(
      database,
      { id, keyId, decision, reason, signature: signed?.signature },
      { policy, chainId },
    );
    const withdrawal = await findWithdrawal(database, id);
    const signedText = signed?.text ?? null;
    if (command.json) {
      command.print(toJson({ outcome, withdrawal: withdrawal ?? null, signedText }));
    } else {
      if (signedText !== null) command.print(`signed: ${signedText}`);
      command.print(`${id}: ${SENTENCES[outcome]}`);
      if (withdrawal !== undefined) {
        const { status, approval, amountUnits, asset } = withdrawal;
        const given = `${countingApprovals(approval).length} of ${approval.needed} approvals`;
        const amount = asset === "TOKEN" ? atokenToToken(amountUnits) : amountUnits.toString();
        command.print(`${status}, ${given}, ${amount} ${asset} to ${withdrawal.destinationText}`);
      }
    }
    return outcome === "done" ? 0 : 1;
  });
}

function termsOf(
  withdrawal: {
    readonly id: string;
    readonly customerId: string;
    readonly asset: string;
    readonly destination: Address;
    readonly amountUnits: bigint;
  },
  chainId: bigint,
): ApprovedTerms {
  const { id: withdrawalId, customerId, asset, destination, amountUnits } = withdrawal;
  return { chainId, withdrawalId, customerId, asset, destination, amountUnits };
}

/** Signs with a key that leaves its file only into this process. @returns with the text that was signed */
function signTerms(
  file: string,
  terms: ApprovedTerms,
  said: { readonly policyHash: string; readonly decision: ApprovalDecision },
): { readonly text: string; readonly signature: ApprovalSignature } {
  let pem: string;
  try {
    pem = readFileSync(file, "utf8");
  } catch (cause) {
    throw new CliError("USAGE", `--signing-key ${file} cannot be read: ${fileCause(cause)}.`);
  }
  try {
    const key = createPrivateKey(pem);
    if (key.asymmetricKeyType !== "ed25519") throw new TypeError("another kind of key");
    const spki = createPublicKey(key).export({ format: "der", type: "spki" });
    return {
      text: approvalText(terms, said),
      signature: {
        publicKey: spki.subarray(-32).toString("hex"),
        signature: sign(null, approvalDigest(terms, said), key).toString("hex"),
      },
    };
  } catch {
    const how = "openssl genpkey -algorithm ed25519";
    throw new CliError("USAGE", `--signing-key ${file} is no Ed25519 key in PEM (${how}).`);
  }
}
