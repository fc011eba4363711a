/** Refusals of the gov module, in the SDK's numbers and words (x/gov `types/errors.go`). */
import { type Address } from "../../../chain/address.js";
import { accountText } from "../../../chain/abci-event.js";
import { type MessageFailure, moduleFailure } from "../module-context.js";
import { MODULE_ACCOUNTS } from "../system-storage.js";

const TEXTS = {
  unknownProposal: [2, "unknown proposal"],
  inactive: [3, "inactive proposal"],
  invalidContent: [5, "invalid proposal content"],
  invalidVote: [7, "invalid vote option"],
  noHandler: [9, "no handler exists for proposal type"],
  unroutable: [10, "proposal message not recognized by router"],
  noMessages: [11, "no messages proposed"],
  invalidMessage: [12, "invalid proposal message"],
  signer: [13, "expected gov account as only signer for proposal message"],
  metadataTooLong: [15, "metadata too long"],
  depositTooSmall: [16, "minimum deposit is too small"],
  proposer: [18, "invalid proposer"],
  votingEnded: [20, "voting period already ended"],
  invalidProposal: [21, "invalid proposal"],
  summaryTooLong: [22, "summary too long"],
  depositDenom: [23, "invalid deposit denom"],
} as const;

/** The failure of a rule: `<what>: <its words>`. */
export function govFailure(name: keyof typeof TEXTS, what = ""): MessageFailure {
  const [code, words] = TEXTS[name];
  return moduleFailure("gov", code, what === "" ? words : `${what}: ${words}`);
}

/** What only governance may do is refused to everybody else. */
export function assertAuthority(authority: Address): void {
  if (authority === MODULE_ACCOUNTS.gov) return;
  const expected = accountText(MODULE_ACCOUNTS.gov);
  const text = `invalid authority; expected ${expected}, got ${accountText(authority)}`;
  throw govFailure("signer", text);
}
