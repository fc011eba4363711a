/** `cosmos.distribution.v1beta1.Query`: rewards, commission, slashes, the community pool. */
import { type Address, operatorText, toBech32 } from "../../../../chain/address.js";
import type { ProtoMessage } from "../../../../chain/protobuf/values.js";
import {
  allRewardsOf,
  communityPool,
  communityTax,
  readRewards,
  rewardsOf,
  withdrawAddress,
} from "../../../modules/reads/distribution-reads.js";
import { operatorsOf, readDelegation, readSlashes } from "../../../modules/reads/staking-reads.js";
import { invalidArgument, notFound } from "../errors.js";
import { decCoinsOf, delegatorIn, operatorIn } from "../module-values.js";
import { orderKey, pageOf, pageRequest } from "../paging.js";
import type { QueryHandlers, ReadContext } from "../registry.js";
import type { ModuleSources } from "../sources.js";

const SERVICE = "/cosmos.distribution.v1beta1.Query";

/** The queries of this service. */
export function distributionQueries(sources: ModuleSources): QueryHandlers {
  return { ...validatorQueries(sources), ...delegatorQueries(sources), ...poolQueries(sources) };
}

function validatorQueries(sources: ModuleSources): QueryHandlers {
  return {
    [`${SERVICE}/ValidatorDistributionInfo`]: async (request, context) => {
      const operator = operatorIn(request, "validator_address");
      const { commissionAtoken } = await needRewards(sources, operator, context);
      const ownAtoken = await sources.modules
        .at(context.height)
        .read((state) => rewardsOf(state, operator, operator), context.signal);
      return {
        operator_address: toBech32(operator),
        self_bond_rewards: decCoinsOf(ownAtoken),
        commission: decCoinsOf(commissionAtoken),
      };
    },
    [`${SERVICE}/ValidatorOutstandingRewards`]: async (request, context) => {
      const operator = operatorIn(request, "validator_address");
      const rewards = await needRewards(sources, operator, context);
      const allAtoken = rewards.delegatorsAtoken + rewards.commissionAtoken;
      return { rewards: { rewards: decCoinsOf(allAtoken) } };
    },
    [`${SERVICE}/ValidatorCommission`]: async (request, context) => {
      const operator = operatorIn(request, "validator_address");
      const { commissionAtoken } = await needRewards(sources, operator, context);
      return { commission: { commission: decCoinsOf(commissionAtoken) } };
    },
    [`${SERVICE}/ValidatorSlashes`]: async (request, { height, signal }) => {
      const operator = operatorIn(request, "validator_address");
      const [from, to] = [request.bigint("starting_height"), request.bigint("ending_height")];
      if (to > 0n && to < from) {
        throw invalidArgument(`starting height greater than ending height (${from} > ${to})`);
      }
      const all = await sources.modules
        .at(height)
        .read((state) => readSlashes(state, operator), signal);
      // There are no periods here: a slash is named by its place among those of its validator.
      const slashes = all
        .map((slash, index) => ({ ...slash, place: BigInt(index + 1) }))
        .filter((one) => BigInt(one.height) >= from && (to === 0n || BigInt(one.height) <= to));
      const { items, response } = pageOf(slashes, pageRequest(request), ({ place }) =>
        orderKey(place),
      );
      return {
        slashes: items.map(({ place, fraction }) => ({ validator_period: place, fraction })),
        pagination: response,
      };
    },
  };
}

function delegatorQueries(sources: ModuleSources): QueryHandlers {
  return {
    [`${SERVICE}/DelegationRewards`]: async (request, { height, signal }) => {
      const delegator = delegatorIn(request, "delegator_address");
      const operator = operatorIn(request, "validator_address");
      const state = sources.modules.at(height);
      const delegation = await state.read(
        (now) => readDelegation(now, operator, delegator),
        signal,
      );
      if (delegation === undefined) {
        await needRewards(sources, operator, { height, signal });
        throw notFound("no delegation for (address, validator) tuple");
      }
      const amountAtoken = await state.read((now) => rewardsOf(now, operator, delegator), signal);
      return { rewards: decCoinsOf(amountAtoken) };
    },
    [`${SERVICE}/DelegationTotalRewards`]: async (request, { height, signal }) => {
      const delegator = delegatorIn(request, "delegator_address");
      const all = await sources.modules
        .at(height)
        .read((state) => allRewardsOf(state, delegator), signal);
      const totalAtoken = all.reduce((sum, { amountAtoken }) => sum + amountAtoken, 0n);
      return {
        rewards: all.map(({ operator, amountAtoken }) => ({
          validator_address: operatorText(operator),
          reward: decCoinsOf(amountAtoken),
        })),
        total: decCoinsOf(totalAtoken),
      };
    },
    [`${SERVICE}/DelegatorValidators`]: async (request, { height, signal }) => {
      const delegator = delegatorIn(request, "delegator_address");
      const operators = await sources.modules
        .at(height)
        .read((state) => operatorsOf(state, delegator), signal);
      return { validators: operators.map(operatorText) };
    },
    [`${SERVICE}/DelegatorWithdrawAddress`]: async (request, { height, signal }) => {
      const delegator = delegatorIn(request, "delegator_address");
      const to = await sources.modules
        .at(height)
        .read((state) => withdrawAddress(state, delegator), signal);
      return { withdraw_address: toBech32(to) };
    },
  };
}

function poolQueries({ modules }: ModuleSources): QueryHandlers {
  return {
    [`${SERVICE}/CommunityPool`]: async (_request, { height, signal }) => {
      return { pool: decCoinsOf(await modules.at(height).read(communityPool, signal)) };
    },
    [`${SERVICE}/Params`]: async (_request, { height, signal }): Promise<ProtoMessage> => {
      const tax = await modules.at(height).read(communityTax, signal);
      return {
        params: {
          community_tax: tax,
          // The proposer gets no more than the others: two parameters that the SDK gave up, too.
          base_proposer_reward: 0n,
          bonus_proposer_reward: 0n,
          withdraw_addr_enabled: true,
        },
      };
    },
  };
}

async function needRewards(
  { modules }: ModuleSources,
  operator: Address,
  { height, signal }: ReadContext,
) {
  const rewards = await modules.at(height).read((state) => readRewards(state, operator), signal);
  if (rewards === undefined) throw notFound(`validator ${operatorText(operator)} does not exist`);
  return rewards;
}
