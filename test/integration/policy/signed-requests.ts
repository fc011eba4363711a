/** Requests that a person has signed for. */
import { expect } from "@jest/globals";
import { decideWithdrawal } from "../../../ledger/policy/approvals.js";
import type { Withdrawal } from "../../../ledger/withdrawals/withdrawals.js";
import { FAKE_CHAIN_ID } from "../../helpers/chains/fake-chain.js";
import type { House } from "../../helpers/exchange/house.js";
import { APPROVERS, policyOf, signatureOf } from "./terms.js";

/** Each approver of a policy, as it names them. */
const approvers = APPROVERS.map(({ name, publicKey }) => ({ name, publicKey }));

/** Every payment needs one signature. */
export const SIGNED = signedWith({});

/** The same with further rules. */
export function signedWith(rules: Parameters<typeof policyOf>[0]) {
  const approvals = [{ aboveUnits: 0n, needed: 1, signed: true }];
  return policyOf({ approvals, ...rules }, { approvers });
}

/** A request that ann has signed for under the policy of now. */
export async function askSigned(
  house: House,
  fields: Parameters<House["accept"]>[0] = {},
): Promise<Withdrawal> {
  const asked = await house.accept(fields);
  const { policy } = house.files;
  const signature = signatureOf(0, asked, policy);
  const said = { id: asked.id, keyId: "ann", decision: "approve", reason: "fine" } as const;
  const by = { policy, chainId: FAKE_CHAIN_ID };
  expect(await decideWithdrawal(house.database, { ...said, signature }, by)).toBe("done");
  return asked;
}
