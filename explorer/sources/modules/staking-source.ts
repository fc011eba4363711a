/** What pages ask about stake: validators, who delegated, what is on its way out, rewards, schedules. */
import { type Address, consensusText, operatorText, toBech32 } from "../../../chain/address.js";
import { validatorAddress } from "../../../chain/consensus/validator-set.js";
import type { Atoken } from "../../../chain/units.js";
import {
  type AnswerObject,
  readBoolean,
  readCount,
  readDecimal,
  readObject,
  readString,
} from "../../../rpc-client/answer-fields.js";
import { badAnswer } from "../../../rpc-client/errors.js";
import type { RestClient } from "./rest-client.js";
import {
  coinsAtoken,
  decCoinsAtoken,
  pageQuery,
  readAccount,
  readFraction,
  readOperator,
  readPage,
  readTime,
  type RestPage,
  rowsOf,
  textIn,
} from "./rest-fields.js";

/** Whether a validator takes part. */
export type BondStatus = "bonded" | "unbonding" | "unbonded";

/** A validator; texts are its operator's. */
export interface StakedValidator {
  readonly operator: Address;
  /** Address of its key of consensus. */
  readonly consensusAddress: Address;
  /** Ed25519, base64. */
  readonly publicKey: string;
  readonly status: BondStatus;
  readonly isJailed: boolean;
  readonly stakeAtoken: Atoken;
  readonly minSelfStakeAtoken: Atoken;
  /** Fractions with 18 decimals. */
  readonly commission: {
    readonly rate: bigint;
    readonly maxRate: bigint;
    readonly maxChangeRate: bigint;
    readonly changedAtSeconds: number | undefined;
  };
  /** When the stake of one that left is free; undefined for others. */
  readonly freeAtSeconds: number | undefined;
  readonly moniker: string;
  readonly website: string;
  readonly identity: string;
  readonly contact: string;
  readonly details: string;
}

/** How a validator signs. */
export interface SigningRecord {
  readonly missedBlocks: bigint;
  /** Blocks since it began to be counted. */
  readonly countedBlocks: bigint;
  readonly jailedUntilSeconds: number | undefined;
  /** Barred for ever: it signed two blocks of one height. */
  readonly isTombstoned: boolean;
}

/** Stake of an account at a validator. */
export interface Delegation {
  readonly delegator: Address;
  readonly operator: Address;
  readonly amountAtoken: Atoken;
}

/** Stake that is on its way to its owner. */
export interface UnbondingEntry extends Delegation {
  readonly height: bigint;
  readonly freeAtSeconds: number | undefined;
}

/** Stake that was moved and is still liable for what its former validator did. */
export interface RedelegationEntry {
  readonly from: Address;
  readonly to: Address;
  readonly amountAtoken: Atoken;
  readonly endsAtSeconds: number | undefined;
}

/** Rewards that an account has not yet taken. */
export interface RewardList {
  readonly totalAtoken: Atoken;
  readonly byOperator: ReadonlyMap<Address, bigint>;
}

/** Coins of genesis that become free by a schedule. */
export interface VestingSchedule {
  readonly originalAtoken: Atoken;
  readonly delegatedLockedAtoken: Atoken;
  /** Undefined where all become free at once, at the end. */
  readonly fromSeconds: number | undefined;
  readonly untilSeconds: number;
}

/** What a validator earned and has not yet given away. */
export interface ValidatorEarnings {
  readonly outstandingAtoken: Atoken;
  readonly commissionAtoken: Atoken;
  /** Times that it was slashed. */
  readonly slashes: number;
}

/** Validators that are asked for at once; no chain has more of them than a thousand. */
const VALIDATORS_PER_PAGE = 500;

/** Records of signing, the most that a page may have. */
const RECORDS_PER_PAGE = 1_000;

/** Entries of an account or a validator on a page. */
const ENTRIES_PER_PAGE = 100;

/** Pages of validators that are looked through for those that are wanted. */
const MAX_PAGES = 5;

/** Slashes that are counted. */
const SLASHES = 1_000;

const STAKING = "/cosmos/staking/v1beta1";
const DISTRIBUTION = "/cosmos/distribution/v1beta1";
const SLASHING = "/cosmos/slashing/v1beta1";

/** Reads of staking, distribution and slashing. Faults as of `RestClient.get`, and BAD_ANSWER. */
export class StakingSource {
  constructor(private readonly rest: RestClient) {}

  /** Validators of every state, in the node's order. */
  async validators(
    place: string | undefined,
    signal: AbortSignal,
  ): Promise<RestPage<StakedValidator>> {
    const query = pageQuery(VALIDATORS_PER_PAGE, place);
    return readPage(
      await this.ask(`${STAKING}/validators`, query, signal),
      "validators",
      validatorOf,
    );
  }

  /** The validator of an operator. */
  async validator(operator: Address, signal: AbortSignal): Promise<StakedValidator | undefined> {
    const path = `${STAKING}/validators/${operatorText(operator)}`;
    const found = await this.rest.get(path, {}, signal);
    return found === undefined
      ? undefined
      : validatorOf(readObject(found["validator"], "validator"));
  }

  /** The validator whose key of consensus has this address; undefined among so many as are read. */
  async ofConsensus(consensus: Address, signal: AbortSignal): Promise<StakedValidator | undefined> {
    const isIt = ({ consensusAddress }: StakedValidator) => consensusAddress === consensus;
    const [found] = await this.find(isIt, 1, signal);
    return found;
  }

  /** Validators that are wanted, in the node's order, at most so many, among so many as are read. */
  async find(
    isWanted: (one: StakedValidator) => boolean,
    most: number,
    signal: AbortSignal,
  ): Promise<readonly StakedValidator[]> {
    const found: StakedValidator[] = [];
    let place: string | undefined;
    for (let page = 0; page < MAX_PAGES; page++) {
      const { items, next } = await this.validators(place, signal);
      found.push(...items.filter(isWanted));
      if (found.length >= most || next === undefined) break;
      place = next;
    }
    return found.slice(0, most);
  }

  /** How validators sign, by their consensus address. */
  async signing(signal: AbortSignal): Promise<ReadonlyMap<string, SigningRecord>> {
    const answer = await this.ask(
      `${SLASHING}/signing_infos`,
      pageQuery(RECORDS_PER_PAGE, undefined),
      signal,
    );
    return new Map(
      rowsOf(answer, "info").map((row) => [readString(row["address"], "address"), recordOf(row)]),
    );
  }

  /** How one validator signs; undefined before it is counted. */
  async signingOf(consensus: Address, signal: AbortSignal): Promise<SigningRecord | undefined> {
    const path = `${SLASHING}/signing_infos/${consensusText(consensus)}`;
    const found = await this.rest.get(path, {}, signal);
    return found === undefined
      ? undefined
      : recordOf(readObject(found["val_signing_info"], "val_signing_info"));
  }

  /** Blocks over which it is counted who signed. */
  async signingWindow(signal: AbortSignal): Promise<bigint> {
    const answer = await this.ask(`${SLASHING}/params`, {}, signal);
    const params = readObject(answer["params"], "params");
    return readDecimal(params["signed_blocks_window"], "signed_blocks_window");
  }

  /** Stake of all validators that take part. */
  async bondedAtoken(signal: AbortSignal): Promise<bigint> {
    const { pool } = await this.ask(`${STAKING}/pool`, {}, signal);
    return readDecimal(readObject(pool, "pool")["bonded_tokens"], "bonded_tokens");
  }

  /** Who delegated to a validator. */
  async delegationsTo(
    operator: Address,
    place: string | undefined,
    signal: AbortSignal,
  ): Promise<RestPage<Delegation>> {
    const path = `${STAKING}/validators/${operatorText(operator)}/delegations`;
    const answer = await this.ask(path, pageQuery(ENTRIES_PER_PAGE, place), signal);
    return readPage(answer, "delegation_responses", delegationOf);
  }

  /** What one account delegated to one validator; undefined for nothing. */
  async delegation(
    operator: Address,
    delegator: Address,
    signal: AbortSignal,
  ): Promise<Delegation | undefined> {
    const validator = operatorText(operator);
    const path = `${STAKING}/validators/${validator}/delegations/${toBech32(delegator)}`;
    const found = await this.rest.get(path, {}, signal);
    return found === undefined
      ? undefined
      : delegationOf(readObject(found["delegation_response"], "delegation_response"));
  }

  /** Where an account delegated. */
  async delegationsOf(
    delegator: Address,
    place: string | undefined,
    signal: AbortSignal,
  ): Promise<RestPage<Delegation>> {
    const path = `${STAKING}/delegations/${toBech32(delegator)}`;
    const answer = await this.ask(path, pageQuery(ENTRIES_PER_PAGE, place), signal);
    return readPage(answer, "delegation_responses", delegationOf);
  }

  /** Stake of an account that is on its way out. */
  async unbondingOf(delegator: Address, signal: AbortSignal): Promise<RestPage<UnbondingEntry>> {
    const path = `${STAKING}/delegators/${toBech32(delegator)}/unbonding_delegations`;
    return unbondingPage(await this.ask(path, pageQuery(ENTRIES_PER_PAGE, undefined), signal));
  }

  /** Stake at a validator that is on its way out. */
  async unbondingFrom(operator: Address, signal: AbortSignal): Promise<RestPage<UnbondingEntry>> {
    const path = `${STAKING}/validators/${operatorText(operator)}/unbonding_delegations`;
    return unbondingPage(await this.ask(path, pageQuery(ENTRIES_PER_PAGE, undefined), signal));
  }

  /** Stake of an account that was moved. */
  async redelegationsOf(
    delegator: Address,
    signal: AbortSignal,
  ): Promise<RestPage<RedelegationEntry>> {
    const path = `${STAKING}/delegators/${toBech32(delegator)}/redelegations`;
    const answer = await this.ask(path, pageQuery(ENTRIES_PER_PAGE, undefined), signal);
    const page = readPage(answer, "redelegation_responses", redelegationsIn);
    return { ...page, items: page.items.flat() };
  }

  /** Rewards of an account. */
  async rewardsOf(delegator: Address, signal: AbortSignal): Promise<RewardList> {
    const path = `${DISTRIBUTION}/delegators/${toBech32(delegator)}/rewards`;
    const answer = await this.ask(path, {}, signal);
    const byOperator = rowsOf(answer, "rewards").map(
      (row) =>
        [
          readOperator(row["validator_address"], "validator_address"),
          decCoinsAtoken(row["reward"]),
        ] as const,
    );
    return { totalAtoken: decCoinsAtoken(answer["total"]), byOperator: new Map(byOperator) };
  }

  /** Where an account's rewards are paid to. */
  async payoutAddress(delegator: Address, signal: AbortSignal): Promise<Address> {
    const path = `${DISTRIBUTION}/delegators/${toBech32(delegator)}/withdraw_address`;
    const answer = await this.ask(path, {}, signal);
    return readAccount(answer["withdraw_address"], "withdraw_address");
  }

  /** What a validator earned. */
  async earnings(operator: Address, signal: AbortSignal): Promise<ValidatorEarnings> {
    const base = `${DISTRIBUTION}/validators/${operatorText(operator)}`;
    const [outstanding, commission, slashes] = await Promise.all([
      this.ask(`${base}/outstanding_rewards`, {}, signal),
      this.ask(`${base}/commission`, {}, signal),
      this.ask(`${base}/slashes`, pageQuery(SLASHES, undefined), signal),
    ]);
    const { rewards } = readObject(outstanding["rewards"] ?? {}, "rewards");
    const earned = readObject(commission["commission"] ?? {}, "commission");
    return {
      outstandingAtoken: decCoinsAtoken(rewards),
      commissionAtoken: decCoinsAtoken(earned["commission"]),
      slashes: rowsOf(slashes, "slashes").length,
    };
  }

  /** The schedule of an account; undefined without one. */
  async vesting(account: Address, signal: AbortSignal): Promise<VestingSchedule | undefined> {
    const path = `/cosmos/auth/v1beta1/accounts/${toBech32(account)}`;
    const answer = await this.rest.get(path, {}, signal);
    return answer === undefined ? undefined : scheduleOf(readObject(answer["account"], "account"));
  }

  /** What an account may send, its locked coins left out. */
  async spendableAtoken(account: Address, signal: AbortSignal): Promise<bigint> {
    const path = `/cosmos/bank/v1beta1/spendable_balances/${toBech32(account)}`;
    return coinsAtoken((await this.ask(path, {}, signal))["balances"]);
  }

  /** Of lists and totals, which are there even where they are empty. */
  private async ask(...question: Parameters<RestClient["get"]>): Promise<AnswerObject> {
    return (await this.rest.get(...question)) ?? {};
  }
}

const STATUSES: ReadonlyMap<unknown, BondStatus> = new Map([
  ["BOND_STATUS_BONDED", "bonded"],
  ["BOND_STATUS_UNBONDING", "unbonding"],
  ["BOND_STATUS_UNBONDED", "unbonded"],
]);

function validatorOf(row: AnswerObject): StakedValidator {
  const status = STATUSES.get(row["status"]);
  if (status === undefined) throw badAnswer("status of a validator");
  const publicKey = readString(
    readObject(row["consensus_pubkey"], "consensus_pubkey")["key"],
    "key",
  );
  const key = Buffer.from(publicKey, "base64");
  if (key.length !== 32) throw badAnswer("key of a validator");
  const commission = readObject(row["commission"], "commission");
  const rates = readObject(commission["commission_rates"], "commission_rates");
  const description = readObject(row["description"] ?? {}, "description");
  return {
    operator: readOperator(row["operator_address"], "operator_address"),
    consensusAddress: validatorAddress(key),
    publicKey,
    status,
    isJailed: readBoolean(row["jailed"], "jailed"),
    stakeAtoken: readDecimal(row["tokens"], "tokens"),
    minSelfStakeAtoken: readDecimal(row["min_self_delegation"], "min_self_delegation"),
    commission: {
      rate: readFraction(rates["rate"], "rate"),
      maxRate: readFraction(rates["max_rate"], "max_rate"),
      maxChangeRate: readFraction(rates["max_change_rate"], "max_change_rate"),
      changedAtSeconds: readTime(commission["update_time"], "update_time"),
    },
    freeAtSeconds:
      status === "unbonding" ? readTime(row["unbonding_time"], "unbonding_time") : undefined,
    moniker: textIn(description["moniker"]),
    website: textIn(description["website"]),
    identity: textIn(description["identity"]),
    contact: textIn(description["security_contact"]),
    details: textIn(description["details"]),
  };
}

function recordOf(row: AnswerObject): SigningRecord {
  return {
    missedBlocks: readDecimal(row["missed_blocks_counter"], "missed_blocks_counter"),
    countedBlocks: readDecimal(row["index_offset"], "index_offset"),
    jailedUntilSeconds: readTime(row["jailed_until"], "jailed_until"),
    isTombstoned: readBoolean(row["tombstoned"], "tombstoned"),
  };
}

function delegationOf(row: AnswerObject): Delegation {
  const delegation = readObject(row["delegation"], "delegation");
  return {
    delegator: readAccount(delegation["delegator_address"], "delegator_address"),
    operator: readOperator(delegation["validator_address"], "validator_address"),
    amountAtoken: coinsAtoken([row["balance"]]),
  };
}

function unbondingPage(answer: AnswerObject): RestPage<UnbondingEntry> {
  const page = readPage(answer, "unbonding_responses", (row) => {
    const delegator = readAccount(row["delegator_address"], "delegator_address");
    const operator = readOperator(row["validator_address"], "validator_address");
    return rowsOf(row, "entries").map((entry) => ({
      delegator,
      operator,
      amountAtoken: readDecimal(entry["balance"], "balance"),
      height: readDecimal(entry["creation_height"], "creation_height"),
      freeAtSeconds: readTime(entry["completion_time"], "completion_time"),
    }));
  });
  return { ...page, items: page.items.flat() };
}

function redelegationsIn(row: AnswerObject): readonly RedelegationEntry[] {
  const route = readObject(row["redelegation"], "redelegation");
  const from = readOperator(route["validator_src_address"], "validator_src_address");
  const to = readOperator(route["validator_dst_address"], "validator_dst_address");
  return rowsOf(row, "entries").map((one) => {
    const entry = readObject(one["redelegation_entry"], "redelegation_entry");
    return {
      from,
      to,
      amountAtoken: readDecimal(one["balance"], "balance"),
      endsAtSeconds: readTime(entry["completion_time"], "completion_time"),
    };
  });
}

const DELAYED = "/cosmos.vesting.v1beta1.DelayedVestingAccount";
const CONTINUOUS = "/cosmos.vesting.v1beta1.ContinuousVestingAccount";

function scheduleOf(account: AnswerObject): VestingSchedule | undefined {
  const type = account["@type"];
  if (type !== DELAYED && type !== CONTINUOUS) return undefined;
  const base = readObject(account["base_vesting_account"], "base_vesting_account");
  return {
    originalAtoken: coinsAtoken(base["original_vesting"]),
    delegatedLockedAtoken: coinsAtoken(base["delegated_vesting"]),
    fromSeconds: type === DELAYED ? undefined : secondsIn(account["start_time"], "start_time"),
    untilSeconds: secondsIn(base["end_time"], "end_time"),
  };
}

/** int64 seconds, which JSON has as a text. */
function secondsIn(value: unknown, name: string): number {
  return readCount(Number(readDecimal(value, name)), name);
}
