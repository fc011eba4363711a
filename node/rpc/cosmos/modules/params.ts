/**
 * `cosmos.params.v1beta1.Query`: parameters by subspace and key, as releases before 0.47 named them.
 * Values are amino JSON: 64-bit numbers and fractions as texts, times in nanoseconds.
 */
import { decimalText } from "../../../../chain/protobuf/json-texts.js";
import { BASE_DENOM } from "../../../../chain/units.js";
import { communityTax } from "../../../modules/reads/distribution-reads.js";
import { readSlashingParams } from "../../../modules/reads/slashing-reads.js";
import { readStakingParams } from "../../../modules/reads/staking-reads.js";
import { notFound } from "../errors.js";
import type { QueryContext, QueryHandlers } from "../registry.js";
import type { ModuleSources, QuerySources } from "../sources.js";

const SERVICE = "/cosmos.params.v1beta1.Query";

const NS_PER_MS = 1_000_000n;

/** JSON values by key. */
type Values = Readonly<Record<string, unknown>>;

/** Reads the values of a subspace. */
type Subspace = (sources: ModuleSources, context: QueryContext) => Promise<Values>;

const SUBSPACES: Readonly<Record<string, Subspace>> = {
  async staking({ modules }, { height, signal }) {
    const params = await modules.at(height).read(readStakingParams, signal);
    return {
      UnbondingTime: `${params.unbondingTimeMs * NS_PER_MS}`,
      MaxValidators: Number(params.maxValidators),
      KeyMaxEntries: Number(params.maxEntries),
      BondDenom: BASE_DENOM,
      MinCommissionRate: decimalText(params.minCommissionRate),
    };
  },
  async slashing({ modules }, { height, signal }) {
    const params = await modules.at(height).read(readSlashingParams, signal);
    return {
      SignedBlocksWindow: `${params.signedBlocksWindow}`,
      MinSignedPerWindow: decimalText(params.minSignedPerWindow),
      DowntimeJailDuration: `${params.downtimeJailMs * NS_PER_MS}`,
      SlashFractionDoubleSign: decimalText(params.slashFractionDoubleSign),
      SlashFractionDowntime: decimalText(params.slashFractionDowntime),
    };
  },
  async distribution({ modules }, { height, signal }) {
    return {
      communitytax: decimalText(await modules.at(height).read(communityTax, signal)),
      baseproposerreward: decimalText(0n),
      bonusproposerreward: decimalText(0n),
      withdrawaddrenabled: true,
    };
  },
};

/** The queries of this service. Where validators have no stake there is no subspace. */
export function paramsQueries(sources: QuerySources): QueryHandlers {
  const { modules } = sources;
  return {
    [`${SERVICE}/Subspaces`]: async (_request, context) => {
      if (modules === undefined) return {};
      const subspaces = [];
      for (const [subspace, read] of Object.entries(SUBSPACES)) {
        subspaces.push({
          subspace,
          keys: Object.keys(await read({ ...sources, modules }, context)),
        });
      }
      return { subspaces };
    },
    [`${SERVICE}/Params`]: async (request, context) => {
      const [subspace, key] = [request.text("subspace"), request.text("key")];
      const read = Object.hasOwn(SUBSPACES, subspace) ? SUBSPACES[subspace] : undefined;
      if (read === undefined || modules === undefined) {
        throw notFound(`subspace '${subspace.slice(0, 100)}': unknown subspace`);
      }
      const values = await read({ ...sources, modules }, context);
      const value = Object.hasOwn(values, key) ? JSON.stringify(values[key]) : undefined;
      if (value === undefined) throw notFound(`parameter ${key.slice(0, 100)} of ${subspace}`);
      return { param: { subspace, key, value } };
    },
  };
}
