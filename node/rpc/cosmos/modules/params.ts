/** `cosmos.params.v1beta1.Query`: parameters by subspace and key, as releases before 0.47 named them. */
import {
  isLegacySubspace,
  legacySubspaces,
  readLegacyParam,
} from "../../../modules/reads/params-reads.js";
import { notFound } from "../errors.js";
import type { QueryHandlers } from "../registry.js";
import type { QuerySources } from "../sources.js";

const SERVICE = "/cosmos.params.v1beta1.Query";

/** The queries of this service. Where validators have no stake there is no subspace. */
export function paramsQueries({ modules }: QuerySources): QueryHandlers {
  return {
    [`${SERVICE}/Subspaces`]: () => {
      return modules === undefined ? {} : { subspaces: legacySubspaces() };
    },
    [`${SERVICE}/Params`]: async (request, { height, signal }) => {
      const [subspace, key] = [request.text("subspace"), request.text("key")];
      if (modules === undefined || !isLegacySubspace(subspace)) {
        throw notFound(`subspace '${subspace.slice(0, 100)}': unknown subspace`);
      }
      const value = await modules
        .at(height)
        .read((state) => readLegacyParam(state, { subspace, key }), signal);
      if (value === undefined) throw notFound(`parameter ${key.slice(0, 100)} of ${subspace}`);
      return { param: { subspace, key, value } };
    },
  };
}
