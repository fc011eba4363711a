/**
 * The end of what is on its way out: coins go back, a redelegation answers for nothing any more, a
 * validator is unbonded. Oldest first, as much as a block may.
 */
import { type Address, operatorText } from "../../../chain/address.js";
import { accountText, amountText } from "../../../chain/abci-event.js";
import type { Atoken } from "../../../chain/units.js";
import type { ModuleContext } from "../module-context.js";
import { MODULE_ACCOUNTS } from "../system-storage.js";
import { bearSlashes, bearSlashesOf, type SlashReader } from "./delegating.js";
import { Delegations, ENTRY_KIND, type QueueEntry } from "./delegation-record.js";
import { BOND_STATUS, type SlashEvent, Validators } from "./validator-record.js";
import { removeIfEmpty } from "./shares.js";

/** Entries that end in one block: the others wait for the next. */
const MAX_ENDED = 100;
/** Places of the queue that a block looks at; removed entries leave theirs. */
const MAX_LOOKED_AT = 1_000;

/** Ends what is over by the block's time, oldest first, as much as a block may. */
export function endEntries(context: ModuleContext): void {
  const delegations = new Delegations(context.state);
  const slashOf = readOnce();
  let left = MAX_LOOKED_AT;
  for (let ended = 0; ended < MAX_ENDED && left > 0; ended++) {
    const { entry, passed } = delegations.nextOver(context.timeMs, left);
    if (entry === undefined) return;
    left -= passed;
    if (entry.kind === ENTRY_KIND.validator) {
      delegations.remove(entry);
      endValidatorUnbonding(context, entry);
      continue;
    }
    left -= bearOlder(context, entry, slashOf);
    const restAtoken = bearSlashesOf(context, delegations.entry(entry.id), slashOf);
    delegations.remove(entry);
    if (entry.kind === ENTRY_KIND.unbonding) completeUnbonding(context, entry, restAtoken);
    else completeRedelegation(context, entry);
    removeIfEmpty(context, new Validators(context.state).of(entry.source));
  }
}

/**
 * Where the unbonding time has become shorter, stake is paid out before the redelegation is over that brought
 * it to its validator: it bears first what that owes, or it would escape.
 * @returns how many entries were looked at
 */
function bearOlder(
  context: ModuleContext,
  { kind, id, delegator, source }: QueueEntry,
  slashOf: SlashReader,
): number {
  const isOutOfOrder = new Delegations(context.state).hasClosedParts;
  if (kind !== ENTRY_KIND.unbonding || !isOutOfOrder) return 0;
  return bearSlashes(context, delegator, source, { youngest: id, slashOf });
}

/**
 * Slashes that are read once in the end of a block, in which none is added: a validator that is jailed again
 * and again has thousands, and nobody pays for looking through them for each entry.
 */
function readOnce(): SlashReader {
  const known = new Map<Address, Map<number, SlashEvent>>();
  return (source, index) => {
    const slashes = known.get(source.operator) ?? new Map<number, SlashEvent>();
    known.set(source.operator, slashes);
    const slash = slashes.get(index) ?? source.slashAt(index);
    slashes.set(index, slash);
    return slash;
  };
}

function completeUnbonding(
  context: ModuleContext,
  { delegator, source }: QueueEntry,
  restAtoken: Atoken,
): void {
  if (restAtoken > 0n) {
    context.moveCoins("UNBOND_COMPLETE", MODULE_ACCOUNTS.staking, delegator, restAtoken);
    context.state.locks?.returned(delegator, restAtoken);
  }
  context.emit("complete_unbonding", {
    amount: amountText(restAtoken),
    validator: operatorText(source),
    delegator: accountText(delegator),
  });
}

function completeRedelegation(context: ModuleContext, entry: QueueEntry): void {
  context.emit("complete_redelegation", {
    amount: amountText(entry.initialAtoken),
    delegator: accountText(entry.delegator),
    source_validator: operatorText(entry.source),
    destination_validator: operatorText(entry.destination),
  });
}

function endValidatorUnbonding(context: ModuleContext, entry: QueueEntry): void {
  const validator = new Validators(context.state).of(entry.source);
  if (!validator.exists || validator.unbondingEntry !== entry.id) return;
  validator.setStatus(BOND_STATUS.unbonded);
  removeIfEmpty(context, validator);
}
