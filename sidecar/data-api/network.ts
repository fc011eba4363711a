/** /network/list and /network/options: answered without a node, too, so by both servers. */
import { KIT_VERSION } from "../../chain/version.js";
import { type ChainAccounts, USUAL_ACCOUNTS } from "../../chain/chain-accounts.js";
import type { Network } from "../../chain/networks.js";
import type { HttpRoute } from "../../runtime/http/http-route.js";
import { toRoute } from "../rosetta/endpoint.js";
import { listedErrors } from "../rosetta/errors.js";
import {
  accountIdentifier,
  networkIdentifier,
  OPERATION_TYPES,
  ROSETTA_VERSION,
} from "../rosetta/identifiers.js";
import { readFields } from "../rosetta/request-fields.js";
import { CALL_METHODS } from "./call-methods.js";

/** What a node tells; offline there is none. */
export interface NodeFacts {
  /** As the chain's genesis names them. */
  readonly accounts?: (() => ChainAccounts) | undefined;
  /** The release that it is of; undefined while it has not said. */
  readonly nodeVersion?: () => string | undefined;
}

/** Both routes for one network. */
export function networkRoutes(network: Network, told: NodeFacts = {}): HttpRoute[] {
  return [
    {
      method: "post",
      path: "/network/list",
      handler: (request) => {
        readFields(request.body ?? {}, { at: "" }, ["metadata"]);
        return Promise.resolve({ body: { network_identifiers: [networkIdentifier(network)] } });
      },
    },
    toRoute(
      {
        path: "/network/options",
        fields: ["metadata"],
        handler: () => Promise.resolve({ body: networkOptions(network, told) }),
      },
      network,
    ),
  ];
}

/** Reply of /network/options: what an integrator's asserter snapshots. */
function networkOptions(network: Network, { accounts, nodeVersion }: NodeFacts) {
  return {
    version: {
      rosetta_version: ROSETTA_VERSION,
      // Of the node that the kit was released with, where none says another.
      node_version: nodeVersion?.() ?? KIT_VERSION,
      middleware_version: KIT_VERSION,
      metadata: {
        evm_chain_id: network.evmChainId.toString(),
        cosmos_chain_id: network.cosmosChainId,
        system_accounts: systemAccounts(accounts?.() ?? USUAL_ACCOUNTS),
      },
    },
    allow: {
      operation_statuses: [
        { status: "SUCCESS", successful: true },
        { status: "FAILURE", successful: false },
      ],
      operation_types: OPERATION_TYPES,
      errors: listedErrors(),
      historical_balance_lookup: true,
      // Genesis carries the time its file was made; every later block a real one.
      timestamp_start_index: 1,
      call_methods: CALL_METHODS,
      balance_exemptions: [],
      mempool_coins: false,
      block_hash_case: "lower_case",
      transaction_hash_case: "lower_case",
    },
  };
}

/** Accounts of the chain itself, which nobody holds a key to: they appear in every block. */
function systemAccounts(accounts: ChainAccounts): Readonly<Record<string, string>> {
  return {
    fee_collector: accountIdentifier(accounts.feeCollector).address,
    treasury: accountIdentifier(accounts.treasury).address,
    validators_pool: accountIdentifier(accounts.validatorsPool).address,
    development_fund: accountIdentifier(accounts.developmentFund).address,
  };
}
