/** Reads of claims for the servers, put together from the node's parts. */
import { type ClaimReads, createClaimReads } from "../modules/reads/block-claims.js";
import { createModulesAt } from "../modules/reads/modules-at.js";
import type { Genesis } from "../settings/genesis.js";
import type { OpenStores } from "../store/open-store.js";

/** What the servers are asked of claims; nothing on a chain without stake. */
export function createNodeClaims({
  genesis,
  stores,
}: {
  readonly genesis: Genesis;
  readonly stores: Pick<OpenStores, "state">;
}): { readonly claims?: ClaimReads } {
  if (genesis.modules === undefined) return {};
  const modules = createModulesAt((height) => stores.state.readerAt(height));
  return { claims: createClaimReads(modules, genesis.params.validatorsPool) };
}
