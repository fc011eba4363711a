/** `cosmos.upgrade.v1beta1.Query`: what is planned, and what was done. */
import { toBech32 } from "../../../../chain/address.js";
import {
  appVersion,
  GOV_ACCOUNT,
  upgradeHeight,
  upgradePlan,
} from "../../../modules/reads/gov-reads.js";
import { notFound } from "../errors.js";
import type { QueryHandlers } from "../registry.js";
import type { ModuleSources } from "../sources.js";

const SERVICE = "/cosmos.upgrade.v1beta1.Query";

/** Modules of the chain; all of them are of one version, that of the rules. */
const MODULES = "auth bank consensus distribution evidence evm gov mint slashing staking upgrade";

/** The queries of this service. */
export function upgradeQueries({ modules }: ModuleSources): QueryHandlers {
  return {
    [`${SERVICE}/CurrentPlan`]: async (_request, { height, signal }) => {
      const plan = await modules.at(height).read(upgradePlan, signal);
      if (plan === undefined) return {};
      // Heights count: the time stays Go's zero.
      return { plan: { name: plan.name, height: BigInt(plan.height), info: plan.info } };
    },
    [`${SERVICE}/AppliedPlan`]: async (request, { height, signal }) => {
      const name = request.text("name");
      const done = await modules.at(height).read((state) => upgradeHeight(state, name), signal);
      return { height: BigInt(done ?? 0) };
    },
    [`${SERVICE}/UpgradedConsensusState`]: () => ({}),
    [`${SERVICE}/ModuleVersions`]: async (request, { height, signal }) => {
      const wanted = request.text("module_name");
      const version = BigInt(await modules.at(height).read(appVersion, signal));
      const names = MODULES.split(" ").filter((name) => wanted === "" || name === wanted);
      if (names.length === 0) {
        throw notFound(`x/upgrade: QueryModuleVersions module ${wanted.slice(0, 100)} not found`);
      }
      return { module_versions: names.map((name) => ({ name, version })) };
    },
    [`${SERVICE}/Authority`]: () => ({ address: toBech32(GOV_ACCOUNT) }),
  };
}
