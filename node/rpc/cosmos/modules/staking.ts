/** `cosmos.staking.v1beta1.Query`: validators, delegations, what is on its way out. */
import { encodeConsensusHeader } from "../../../../chain/consensus/consensus-header.js";
import { type Address, addressToBytes, operatorText, toBech32 } from "../../../../chain/address.js";
import { EncodedMessage, type ProtoMessage } from "../../../../chain/protobuf/values.js";
import { BASE_DENOM } from "../../../../chain/units.js";
import { breathe } from "../../../../runtime/process/main-thread.js";
import {
  BOND_STATUS,
  type DelegationRead,
  delegationsTo,
  entriesOf,
  type EntryRead,
  type LeavingGroup,
  listValidators,
  operatorsInConsensus,
  operatorsOf,
  readDelegation,
  readPool,
  readStakingParams,
  readValidator,
  type ValidatorRead,
} from "../../../modules/reads/staking-reads.js";
import { decidedOutline } from "../decided-block.js";
import { invalidArgument, notFound } from "../errors.js";
import { coinOf, delegatorIn, operatorIn, secondsOf } from "../module-values.js";
import { leavingPage } from "../leaving-page.js";
import { pageOf, pageRequest, partPage, partRequest } from "../paging.js";
import type { QueryHandlers, ReadContext } from "../registry.js";
import { anyOf, type ModuleSources } from "../sources.js";

const SERVICE = "/cosmos.staking.v1beta1.Query";

/** Heights of which the SDK keeps the set; here they reach back as far as the node's state. */
const HISTORICAL_ENTRIES = 10_000;

/** States of validators by the names that requests have. */
const STATUSES: ReadonlyMap<string, number> = new Map([
  ["BOND_STATUS_UNBONDED", BOND_STATUS.unbonded],
  ["BOND_STATUS_UNBONDING", BOND_STATUS.unbonding],
  ["BOND_STATUS_BONDED", BOND_STATUS.bonded],
]);

/** The queries of this service. */
export function stakingQueries(sources: ModuleSources): QueryHandlers {
  return {
    ...validatorQueries(sources),
    ...delegationQueries(sources),
    ...leavingQueries(sources),
    [`${SERVICE}/Pool`]: async (_request, { height, signal }) => {
      const pool = await sources.modules.at(height).read(readPool, signal);
      return {
        pool: { not_bonded_tokens: pool.notBondedAtoken, bonded_tokens: pool.bondedAtoken },
      };
    },
    [`${SERVICE}/Params`]: async (_request, { height, signal }) => {
      const params = await sources.modules.at(height).read(readStakingParams, signal);
      return {
        params: {
          unbonding_time: secondsOf(Number(params.unbondingTimeMs)),
          max_validators: Number(params.maxValidators),
          max_entries: Number(params.maxEntries),
          historical_entries: HISTORICAL_ENTRIES,
          bond_denom: BASE_DENOM,
          min_commission_rate: params.minCommissionRate,
        },
      };
    },
  };
}

function validatorQueries(sources: ModuleSources): QueryHandlers {
  return {
    [`${SERVICE}/Validators`]: async (request, context) => {
      const status = request.text("status");
      const wanted = STATUSES.get(status);
      if (status !== "" && wanted === undefined) {
        throw invalidArgument(`invalid validator status ${status.slice(0, 100)}`);
      }
      const page = pageRequest(request);
      const lines = await sources.modules.at(context.height).read(listValidators, context.signal);
      const fitting = lines.filter((line) => wanted === undefined || line.status === wanted);
      const { items, response } = pageOf(fitting, page, ({ operator }) => addressToBytes(operator));
      const operators = items.map(({ operator }) => operator);
      return {
        validators: await validatorsOf(sources, operators, context),
        pagination: response,
      };
    },
    [`${SERVICE}/Validator`]: async (request, context) => {
      const operator = operatorIn(request, "validator_addr");
      const [validator] = await validatorsOf(sources, [operator], context);
      if (validator === undefined) throw notFound(`validator ${operatorText(operator)} not found`);
      return { validator };
    },
    [`${SERVICE}/DelegatorValidators`]: async (request, context) => {
      const delegator = delegatorIn(request, "delegator_addr");
      const { items, response } = pageOf(
        await sources.modules
          .at(context.height)
          .read((state) => operatorsOf(state, delegator), context.signal),
        pageRequest(request),
        addressToBytes,
      );
      return { validators: await validatorsOf(sources, items, context), pagination: response };
    },
    [`${SERVICE}/DelegatorValidator`]: async (request, context) => {
      const pair = pairIn(request);
      await needDelegation(sources, pair, context);
      const [validator] = await validatorsOf(sources, [pair.operator], context);
      return { validator };
    },
    [`${SERVICE}/HistoricalInfo`]: async (request, { height: latest, signal }) => {
      const wanted = request.bigint("height");
      if (wanted < 0n) throw invalidArgument("height cannot be negative");
      if (wanted === 0n || wanted > BigInt(latest)) {
        throw notFound(`historical info for height ${wanted} not found`);
      }
      const height = Number(wanted);
      const { header } = decidedOutline(sources, height);
      // As x/staking notes it when a block begins: the set whose hash is the header's next_validators_hash.
      const before = { height: height - 1, signal };
      const operators = await sources.modules.at(before.height).read(operatorsInConsensus, signal);
      return {
        hist: {
          header: new EncodedMessage(encodeConsensusHeader(header)),
          valset: await validatorsOf(sources, operators, before),
        },
      };
    },
  };
}

function delegationQueries(sources: ModuleSources): QueryHandlers {
  return {
    [`${SERVICE}/ValidatorDelegations`]: async (request, context) => {
      const operator = operatorIn(request, "validator_addr");
      const page = partRequest(pageRequest(request), context);
      const { items, response } = partPage(
        await sources.modules
          .at(page.height)
          .read((state) => delegationsTo(state, operator, page.part), context.signal),
        page,
      );
      return { delegation_responses: items.map(delegationResponse), pagination: response };
    },
    [`${SERVICE}/Delegation`]: async (request, context) => {
      const delegation = await needDelegation(sources, pairIn(request), context);
      return { delegation_response: delegationResponse(delegation) };
    },
    [`${SERVICE}/DelegatorDelegations`]: async (request, { height, signal }) => {
      const delegator = delegatorIn(request, "delegator_addr");
      const state = sources.modules.at(height);
      const { items, response } = pageOf(
        await state.read((now) => operatorsOf(now, delegator), signal),
        pageRequest(request),
        addressToBytes,
      );
      const delegations: ProtoMessage[] = [];
      for (const operator of items) {
        const one = await state.read((now) => readDelegation(now, operator, delegator), signal);
        if (one !== undefined) delegations.push(delegationResponse(one));
        await breathe(signal);
      }
      return { delegation_responses: delegations, pagination: response };
    },
  };
}

function leavingQueries(sources: ModuleSources): QueryHandlers {
  return {
    [`${SERVICE}/UnbondingDelegation`]: async (request, { height, signal }) => {
      const { operator, delegator } = pairIn(request);
      const entries = await sources.modules
        .at(height)
        .read((state) => entriesOf(state, delegator, "unbonding"), signal);
      const [unbond] = unbondings(entries.filter(({ source }) => source === operator));
      if (unbond === undefined) {
        const [from, to] = [toBech32(delegator), operatorText(operator)];
        throw notFound(`unbonding delegation with delegator ${from} not found for validator ${to}`);
      }
      return { unbond: unbond.message };
    },
    [`${SERVICE}/DelegatorUnbondingDelegations`]: async (request, { height, signal }) => {
      const delegator = delegatorIn(request, "delegator_addr");
      const entries = await sources.modules
        .at(height)
        .read((state) => entriesOf(state, delegator, "unbonding"), signal);
      const groups = unbondings(entries);
      const { items, response } = pageOf(groups, pageRequest(request), ({ key }) => key);
      return { unbonding_responses: messagesOf(items), pagination: response };
    },
    [`${SERVICE}/ValidatorUnbondingDelegations`]: async (request, context) => {
      const operator = operatorIn(request, "validator_addr");
      const wanted = { operator, kind: "unbonding", destination: undefined } as const;
      const page = partRequest(pageRequest(request), context);
      const { items, response } = await leavingPage(sources, wanted, page, context.signal);
      return { unbonding_responses: items.map(unbondingMessage), pagination: response };
    },
    [`${SERVICE}/Redelegations`]: async (request, context) => {
      const { height, signal } = context;
      const page = pageRequest(request);
      const source = optionalOperator(request, "src_validator_addr");
      const destination = optionalOperator(request, "dst_validator_addr");
      const isWanted = (entry: EntryRead) =>
        (source === undefined || entry.source === source) &&
        (destination === undefined || entry.destination === destination);
      if (request.text("delegator_addr") === "" && source !== undefined) {
        const wanted = { operator: source, kind: "redelegation", destination } as const;
        const own = partRequest(page, context);
        const { items, response } = await leavingPage(sources, wanted, own, signal);
        return { redelegation_responses: items.map(redelegationMessage), pagination: response };
      }
      const delegator = delegatorIn(request, "delegator_addr");
      const entries = await sources.modules
        .at(height)
        .read((now) => entriesOf(now, delegator, "redelegation"), signal);
      const groups = redelegations(entries.filter(isWanted));
      if (groups.length === 0 && source !== undefined && destination !== undefined) {
        const route = `from ${operatorText(source)} to ${operatorText(destination)}`;
        throw notFound(
          `redelegation not found for delegator address ${toBech32(delegator)} ${route}`,
        );
      }
      const { items, response } = pageOf(groups, page, ({ key }) => key);
      return { redelegation_responses: messagesOf(items), pagination: response };
    },
  };
}

interface Pair {
  readonly operator: Address;
  readonly delegator: Address;
}

type Request = Parameters<typeof operatorIn>[0];

function pairIn(request: Request): Pair {
  const delegator = delegatorIn(request, "delegator_addr");
  return { delegator, operator: operatorIn(request, "validator_addr") };
}

function optionalOperator(request: Request, field: string): Address | undefined {
  return request.text(field) === "" ? undefined : operatorIn(request, field);
}

async function needDelegation(
  { modules }: ModuleSources,
  { operator, delegator }: Pair,
  { height, signal }: ReadContext,
): Promise<DelegationRead> {
  const found = await modules
    .at(height)
    .read((state) => readDelegation(state, operator, delegator), signal);
  if (found !== undefined) return found;
  const [from, to] = [toBech32(delegator), operatorText(operator)];
  throw notFound(`delegation with delegator ${from} not found for validator ${to}`);
}

/** Validators one by one, others running in between; operators without one are left out. */
async function validatorsOf(
  { modules, types }: ModuleSources,
  operators: readonly Address[],
  { height, signal }: ReadContext,
): Promise<ProtoMessage[]> {
  const state = modules.at(height);
  const validators: ProtoMessage[] = [];
  for (const operator of operators) {
    const read = await state.read((now) => readValidator(now, operator), signal);
    if (read !== undefined) validators.push(validatorMessage(types, read));
    await breathe(signal);
  }
  return validators;
}

/** `Validator`. */
function validatorMessage(types: ModuleSources["types"], read: ValidatorRead): ProtoMessage {
  const { commission, unbondingEntry } = read;
  return {
    operator_address: operatorText(read.operator),
    consensus_pubkey: anyOf(types, "cosmos.crypto.ed25519.PubKey", { key: read.publicKey }),
    jailed: read.isJailed,
    status: read.status,
    tokens: read.tokens,
    delegator_shares: read.shares,
    description: { ...read.description },
    unbonding_height: BigInt(read.unbondingHeight),
    unbonding_time: secondsOf(read.unbondingTimeMs),
    commission: {
      commission_rates: {
        rate: commission.rate,
        max_rate: commission.maxRate,
        max_change_rate: commission.maxChangeRate,
      },
      update_time: secondsOf(commission.updateTimeMs),
    },
    min_self_delegation: read.minSelfDelegation,
    unbonding_ids: unbondingEntry === 0n ? [] : [unbondingEntry],
  };
}

/** `DelegationResponse`. */
function delegationResponse(read: DelegationRead): ProtoMessage {
  return {
    delegation: {
      delegator_address: toBech32(read.delegator),
      validator_address: operatorText(read.operator),
      shares: read.shares,
    },
    balance: coinOf(read.amountAtoken),
  };
}

/** Entries of one key as a message. */
interface Group {
  /** What tells it from the others: pages go on with it. */
  readonly key: Uint8Array;
  readonly message: ProtoMessage;
}

/** Entries in the order of their ids, those of one key together. */
function grouped(
  entries: readonly EntryRead[],
  keyOf: (entry: EntryRead) => string,
  messageOf: (group: LeavingGroup) => ProtoMessage,
): Group[] {
  const groups = new Map<string, [EntryRead, ...EntryRead[]]>();
  for (const entry of entries) {
    const group = groups.get(keyOf(entry));
    if (group === undefined) groups.set(keyOf(entry), [entry]);
    else group.push(entry);
  }
  return [...groups.entries()]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([key, group]) => ({ key: Buffer.from(key), message: messageOf(group) }));
}

/** `UnbondingDelegation` of each pair of account and validator. */
function unbondings(entries: readonly EntryRead[]): Group[] {
  return grouped(entries, ({ delegator, source }) => `${delegator}${source}`, unbondingMessage);
}

/** `UnbondingDelegation`. */
function unbondingMessage(group: LeavingGroup): ProtoMessage {
  const [{ delegator, source }] = group;
  return {
    delegator_address: toBech32(delegator),
    validator_address: operatorText(source),
    entries: group.map((entry) => ({
      creation_height: BigInt(entry.height),
      completion_time: secondsOf(entry.endMs),
      initial_balance: entry.initialAtoken,
      balance: entry.leftAtoken,
      unbonding_id: entry.id,
    })),
  };
}

/** `RedelegationResponse` of each route of an account. */
function redelegations(entries: readonly EntryRead[]): Group[] {
  return grouped(
    entries,
    ({ delegator, source, destination }) => `${delegator}${source}${destination}`,
    redelegationMessage,
  );
}

/** `RedelegationResponse`. */
function redelegationMessage(group: LeavingGroup): ProtoMessage {
  const [{ delegator, source, destination }] = group;
  return {
    redelegation: {
      delegator_address: toBech32(delegator),
      validator_src_address: operatorText(source),
      validator_dst_address: operatorText(destination),
    },
    entries: group.map((entry) => ({
      redelegation_entry: {
        creation_height: BigInt(entry.height),
        completion_time: secondsOf(entry.endMs),
        initial_balance: entry.initialAtoken,
        shares_dst: entry.destinationShares,
        unbonding_id: entry.id,
      },
      balance: entry.leftAtoken,
    })),
  };
}

function messagesOf(groups: readonly Group[]): readonly ProtoMessage[] {
  return groups.map(({ message }) => message);
}
