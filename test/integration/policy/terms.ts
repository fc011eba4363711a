/** Policies for tests: the permissive one with a few terms of their own. */
import {
  type AssetRules,
  DEFAULT_ASSET,
  type HashedPolicy,
  hashPolicy,
  PERMISSIVE_POLICY,
  type Policy,
} from "../../../ledger/policy/policy.js";
import { parsePolicy } from "../../../ledger/policy/policy-parser.js";
import { policyFileText } from "../../../ledger/policy/policy.js";
import { signingKeyOf } from "../../../chain/consensus/ed25519.js";
import { approvalDigest, type ApprovalSignature } from "../../../ledger/policy/approval-digest.js";
import type { Withdrawal } from "../../../ledger/withdrawals/withdrawals.js";
import { FAKE_CHAIN_ID } from "../../helpers/chains/fake-chain.js";

/** Rules of every asset, with these changed. */
export function policyOf(rules: Partial<AssetRules>, terms: Partial<Policy> = {}): HashedPolicy {
  const permissive = PERMISSIVE_POLICY.assets.get(DEFAULT_ASSET);
  if (permissive === undefined) throw new Error("the permissive policy has no default");
  const assets = new Map([[DEFAULT_ASSET, { ...permissive, ...rules }]]);
  const policy = { ...PERMISSIVE_POLICY, assets, ...terms };
  const { faults } = parsePolicy(policyFileText(policy));
  if (faults.length > 0) throw new Error(JSON.stringify(faults));
  return hashPolicy(policy);
}

/** Approvers of these tests, by name. */
export const APPROVERS = ["ann", "ben", "cleo"].map((name, index) => {
  const key = signingKeyOf(new Uint8Array(32).fill(index + 1));
  return { name, key, publicKey: Buffer.from(key.publicKey).toString("hex") };
});

/** An approver's signature over a withdrawal under a policy. */
export function signatureOf(
  approver: number,
  withdrawal: Pick<Withdrawal, "id" | "customerId" | "asset" | "destination" | "amountUnits">,
  policy: HashedPolicy,
  decision: "approve" | "reject" = "approve",
): ApprovalSignature {
  const { id, customerId, asset, destination, amountUnits } = withdrawal;
  const by = APPROVERS[approver];
  if (by === undefined) throw new Error("no such approver");
  const digest = approvalDigest(
    { chainId: FAKE_CHAIN_ID, withdrawalId: id, customerId, asset, destination, amountUnits },
    { policyHash: policy.hash, decision },
  );
  return {
    publicKey: by.publicKey,
    signature: Buffer.from(by.key.sign(digest)).toString("hex"),
  };
}
