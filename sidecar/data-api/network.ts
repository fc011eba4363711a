/** /network/list and /network/options: known without a node, so both servers answer them. */
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

/**
 * Both routes for one network.
 * @param accounts as the chain's genesis names them, where there is a node to tell them
 */
export function networkRoutes(network: Network, accounts = () => USUAL_ACCOUNTS): HttpRoute[] {
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
        handler: () => Promise.resolve({ body: networkOptions(network, accounts()) }),
      },
      network,
    ),
  ];
}

/** Reply of /network/options: what an integrator's asserter snapshots. */
function networkOptions(network: Network, accounts: ChainAccounts) {
  return {
    version: {
      rosetta_version: ROSETTA_VERSION,
      node_version: KIT_VERSION,
      middleware_version: KIT_VERSION,
      metadata: {
        evm_chain_id: network.evmChainId.toString(),
        cosmos_chain_id: network.cosmosChainId,
        system_accounts: systemAccounts(accounts),
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
