/** The modules as a block sees them: how their state begins, and what they do at each block's end. */
import type { ValidatorUpdate } from "../../chain/consensus/validator-set.js";
import { DECIMAL_ONE } from "../../chain/encoding/decimal.js";
import type { Atoken } from "../../chain/units.js";
import { FIRST_APP_VERSION } from "../settings/app-version.js";
import type { Genesis } from "../settings/genesis.js";
import { EMPTY_ACCOUNT } from "../store/account-record.js";
import { allocateRewards } from "./distribution/rewards.js";
import { endProposals } from "./gov/settling.js";
import { handlerOf } from "./message-router.js";
import type { BlockEndContext, ModuleContext } from "./module-context.js";
import { putModuleParams } from "./module-params.js";
import { type CommitVote, type Misbehavior, noteVotes, punish } from "./slashing/signing.js";
import { updateConsensusSet } from "./staking/consensus-set.js";
import { delegate } from "./staking/delegating.js";
import { endEntries } from "./staking/queue-end.js";
import { createValidator } from "./staking/registration.js";
import { ATOKEN_PER_POWER } from "./staking/validator-record.js";
import { setAppVersion } from "./upgrade/plan.js";
import { MODULE_ACCOUNTS, MODULE_STUB_CODE, STATELESS_ACCOUNTS } from "./system-storage.js";

export { hasModules } from "./system-storage.js";

/** What consensus tells a block: who signed the one before, and who signed twice. */
export interface BlockFacts {
  readonly votes: readonly CommitVote[];
  readonly misbehavior: readonly Misbehavior[];
}

/** Commission of the validators of block 0: 10 %, at most 20 %, changed by 1 % a day. */
const GENESIS_COMMISSION = {
  rate: DECIMAL_ONE / 10n,
  maxRate: DECIMAL_ONE / 5n,
  maxChangeRate: DECIMAL_ONE / 100n,
};

/** Makes the modules' state of block 0: accounts, parameters, validators with their stake. */
export function beginModules(context: ModuleContext, genesis: Genesis): void {
  const { state } = context;
  const { modules, validators, appVersion = FIRST_APP_VERSION } = genesis;
  if (modules === undefined) return;
  const codeHash = state.putCode(MODULE_STUB_CODE);
  for (const address of [...Object.values(MODULE_ACCOUNTS), ...STATELESS_ACCOUNTS]) {
    const account = state.accountNow(address) ?? EMPTY_ACCOUNT;
    state.putAccount(address, { ...account, codeHash });
  }
  putModuleParams(state, modules);
  // Chains of the first version say nothing, as they did when there was no other.
  if (appVersion > FIRST_APP_VERSION) setAppVersion(state, appVersion);
  for (const { operator, moniker = "", publicKey, power } of validators) {
    if (operator === undefined) continue;
    const validator = createValidator(context, {
      operator,
      publicKey: Uint8Array.from(Buffer.from(publicKey, "base64")),
      description: { moniker, identity: "", website: "", security_contact: "", details: "" },
      commission: GENESIS_COMMISSION,
      minSelfDelegation: 1n,
    });
    delegate(context, operator, validator, BigInt(power) * ATOKEN_PER_POWER);
  }
  updateConsensusSet(context);
}

/**
 * What the modules do at the end of a block, in this order: rewards of the block's mint, faults of
 * signing, proposals and unbondings that are over, the set of consensus.
 * @param mintedAtoken what the validators' pool got of this block's mint
 * @returns changes of the set, in effect two heights later
 */
export function endModules(
  context: BlockEndContext,
  facts: BlockFacts,
  mintedAtoken: Atoken,
): ValidatorUpdate[] {
  allocateRewards(context.state, mintedAtoken);
  noteVotes(context, facts.votes);
  punish(context, facts.misbehavior);
  endProposals(context, handlerOf);
  endEntries(context);
  return updateConsensusSet(context);
}
