/** The port of servers to claims: what a block changed, and what a claim is after a block. */
import type { Address } from "../../../chain/address.js";
import type { BalanceChange } from "../../../chain/balance-change.js";
import type { ClaimKind, PlacedClaimMove } from "../../../chain/staking/claims.js";
import type { AbciEvent } from "../../../chain/consensus/abci-types.js";
import type { Height } from "../../../chain/hex.js";
import type { Atoken } from "../../../chain/units.js";
import { breathe } from "../../../runtime/process/main-thread.js";
import type { JournaledState } from "../../state/journaled-state.js";
import { hasModules, MODULE_ACCOUNTS } from "../system-storage.js";
import {
  genesisTouched,
  type Measured,
  measureClaims,
  measurePools,
  measureValidators,
  NOTHING_MEASURED,
  restOfChanges,
  touchedClaims,
} from "./claim-changes.js";
import { claimsOfEvents, noneTouched, type Touched, touchAll } from "./claim-events.js";
import { readClaim, readLeaving, readStaked, readWithdrawable, type StakedRead } from "./claims.js";
import type { ModulesAt } from "./modules-at.js";
import type { EntryRead } from "./staking-reads.js";

/** A claim with what explains it. */
export interface ClaimRead {
  /** Atoken; of `staked` shares of 10^-18, zero without a validator, for they do not add up. */
  readonly amountUnits: bigint;
  /** Of `staked`: the delegation, or all of them. */
  readonly staked: readonly StakedRead[];
  /** Of `unbonding`. */
  readonly leaving: readonly EntryRead[];
  /** Of `commission`: what could be withdrawn, with what is not booked yet. */
  readonly withdrawableAtoken: Atoken;
}

/** Names a claim, or all delegations of an account. */
export interface ClaimQuery {
  readonly kind: Exclude<ClaimKind, "own">;
  readonly account: Address;
  readonly validator: Address | undefined;
}

/** Reads of claims. */
export interface ClaimReads {
  /** Collects what a block's journal says of claims, in the order of its transactions. */
  begin(height: Height): BlockClaims;
  /** Whether the account can have such a claim: pools have one account each. */
  isPossible(query: Pick<ClaimQuery, "kind" | "account">): boolean;
  /** A claim after a block. Throws HISTORY_PRUNED, STATE_READ_TOO_LARGE. */
  read(query: ClaimQuery, height: Height, signal: AbortSignal): Promise<ClaimRead>;
}

/** Claims that one reader of a state reads: what is leaving has at most a hundred entries of ten words. */
const CLAIMS_AT_ONCE = 10;

/** Makes the port. @param validatorsPool account that rewards lie on */
export function createClaimReads(modules: ModulesAt, validatorsPool: Address): ClaimReads {
  return {
    isPossible({ kind, account }) {
      if (kind === "stake") return account === MODULE_ACCOUNTS.staking;
      return (kind !== "rewards" && kind !== "community") || account === validatorsPool;
    },
    begin: (height) => new BlockClaims(modules, validatorsPool, height),
    read: (query, height, signal) =>
      modules.at(height).read((state) => {
        const { kind, account, validator } = query;
        return {
          amountUnits: readClaim(state, query, validatorsPool),
          staked: kind === "staked" ? readStaked(state, account, validator) : [],
          leaving: kind === "unbonding" ? readLeaving(state, account) : [],
          withdrawableAtoken: kind === "commission" ? readWithdrawable(state, account) : 0n,
        };
      }, signal),
  };
}

/** What one block changed. */
export class BlockClaims {
  private readonly told: PlacedClaimMove[] = [];
  private readonly touched: Touched = noneTouched();
  private stakeJournalAtoken = 0n;
  private isPoolTouched = false;

  constructor(
    private readonly modules: ModulesAt,
    private readonly validatorsPool: Address,
    private readonly height: Height,
  ) {}

  /**
   * Takes one transaction, or the block's own part, in.
   * @param transactionIndex undefined for the block's own
   * @param events of modules, where it succeeded
   */
  note(
    transactionIndex: number | undefined,
    changes: readonly BalanceChange[],
    events: readonly AbciEvent[] | undefined,
  ): void {
    for (const change of changes) this.noteChange(change);
    if (events === undefined || events.length === 0) return;
    const { moves, touched } = claimsOfEvents(events, this.validatorsPool);
    for (const move of moves) this.told.push({ ...move, transactionIndex });
    touchAll(this.touched, touched);
  }

  private noteChange({ reason, from, to, amountAtoken, effective }: BalanceChange): void {
    if (!effective) return;
    if (reason !== "MINT" && (from === this.validatorsPool || to === this.validatorsPool)) {
      this.isPoolTouched = true;
    }
    const isStake = reason === "DELEGATE" || reason === "UNBOND_COMPLETE" || reason === "SLASH";
    if (!isStake) return;
    if (to === MODULE_ACCOUNTS.staking) this.stakeJournalAtoken += amountAtoken;
    if (from === MODULE_ACCOUNTS.staking) this.stakeJournalAtoken -= amountAtoken;
  }

  /**
   * All changes: those of transactions in order, then the block's own.
   * @throws HISTORY_PRUNED; RangeError where the sums do not agree
   */
  async changes(signal: AbortSignal): Promise<readonly PlacedClaimMove[]> {
    const isGenesis = this.height === 0;
    const at = (height: Height) => this.modules.at(height);
    const hasStake = await at(this.height).read(hasModules, signal);
    if (!hasStake) return [];
    if (isGenesis) touchAll(this.touched, await at(0).read(genesisTouched, signal));
    const isWhole = isGenesis || (await this.mayHaveChanged(signal));
    const before = isGenesis
      ? NOTHING_MEASURED
      : await this.measure(this.height - 1, isWhole, signal);
    const after = await this.measure(this.height, isWhole, signal);
    const facts = {
      isGenesis,
      stakeJournalAtoken: this.stakeJournalAtoken,
      validatorsPool: this.validatorsPool,
    };
    const rest = restOfChanges(this.told, this.touched, { before, after }, facts);
    return [...this.told, ...rest.map((move) => ({ ...move, transactionIndex: undefined }))];
  }

  /** Whether more than the mint of this block may have changed claims. */
  private async mayHaveChanged(signal: AbortSignal): Promise<boolean> {
    const { leaving, delegators } = this.touched;
    const isTouched = leaving.size > 0 || delegators.size > 0;
    if (this.isPoolTouched || this.told.length > 0 || isTouched) return true;
    const staking = (height: Height) =>
      this.modules.at(height).read((state) => state.accountNow(MODULE_ACCOUNTS.staking), signal);
    const [was, is] = [await staking(this.height - 1), await staking(this.height)];
    return was?.storageRoot !== is?.storageRoot || was?.balanceAtoken !== is?.balanceAtoken;
  }

  private async measure(height: Height, isWhole: boolean, signal: AbortSignal): Promise<Measured> {
    const pool = this.validatorsPool;
    const read = <Result>(work: (state: JournaledState) => Result) =>
      this.modules.at(height).read(work, signal);
    const pools = await read((state) => measurePools(state, pool));
    if (!isWhole) return { ...NOTHING_MEASURED, pools };
    const validators = await read(measureValidators);
    const wanted = touchedClaims(this.touched);
    const claims = new Map<string, bigint>();
    for (let first = 0; first < wanted.length; first += CLAIMS_AT_ONCE) {
      const some = wanted.slice(first, first + CLAIMS_AT_ONCE);
      for (const [name, value] of await read((state) => measureClaims(state, some, pool))) {
        claims.set(name, value);
      }
      await breathe(signal);
    }
    return { pools, validators, claims };
  }
}
