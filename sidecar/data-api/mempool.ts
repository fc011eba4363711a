/**
 * /mempool and /mempool/transaction: what waits in the node's pool. A pending transaction is shown
 * as what it intends; whether it succeeds, and its fee, are known when it is mined.
 */
import { contractAddressOf } from "../../chain/evm/contract-address.js";
import type { Address } from "../../chain/address.js";
import type { Network } from "../../chain/networks.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import type { PoolTransaction } from "../../rpc-client/pool-calls.js";
import type { HttpRoute } from "../../runtime/http/http-route.js";
import { intentOf, transferOf } from "../rosetta/evm-call.js";
import { type EndpointHandler, toRoute } from "../rosetta/endpoint.js";
import { SidecarError } from "../rosetta/errors.js";
import {
  accountIdentifier,
  type Amount,
  currencyAmount,
  parseHash,
  tokenAmount,
} from "../rosetta/identifiers.js";
import { memoOfData } from "../rosetta/memo.js";
import { inside, readFields } from "../rosetta/request-fields.js";
import { stakeOperations } from "../rosetta/stake-intent.js";
import type { TokenRegistry } from "../rosetta/token-registry.js";

/**
 * Status of the operations: Mesh's asserter takes none that is missing here, and only a listed
 * one. It says what the transaction does if it succeeds; no balance changes before a block.
 */
const INTENDED_STATUS = "SUCCESS";

/** Both routes over a node's pool. */
export function mempoolRoutes(options: {
  readonly network: Network;
  readonly registry: TokenRegistry;
  readonly client: Pick<EvmClient, "poolHashes" | "poolTransaction">;
  /** Throws while the node contradicts the index, or is behind it: its pool is not the chain's. */
  readonly assertCurrent: () => Promise<void>;
}): HttpRoute[] {
  const { network, registry, client, assertCurrent } = options;
  const mempool: EndpointHandler = async (_fields, { signal }) => {
    await assertCurrent();
    const { pending, queued } = await client.poolHashes({ signal });
    const identifiers = [...pending, ...queued].map((hash) => ({ hash }));
    return { body: { transaction_identifiers: identifiers } };
  };
  const transaction: EndpointHandler = async (fields, { signal }) => {
    const place = { at: "transaction_identifier" };
    const identifier = readFields(fields["transaction_identifier"], place, ["hash"]);
    const hash = parseHash(identifier["hash"], inside(place, "hash"));
    await assertCurrent();
    const found = await client.poolTransaction(hash, { signal });
    if (found === undefined) throw new SidecarError("NOT_IN_MEMPOOL", { hash });
    return { body: { transaction: toRosettaTransaction(found, registry) } };
  };
  return [
    toRoute({ path: "/mempool", fields: ["metadata"], handler: mempool }, network),
    toRoute(
      {
        path: "/mempool/transaction",
        fields: ["transaction_identifier"],
        handler: transaction,
      },
      network,
    ),
  ];
}

/** Pure: a transaction of the pool as Rosetta's `Transaction`. */
function toRosettaTransaction(pending: PoolTransaction, registry: TokenRegistry) {
  return {
    transaction_identifier: { hash: pending.hash },
    operations: operationsOf(pending, registry),
    metadata: metadataOf(pending),
  };
}

interface Movement {
  readonly type: "CALL" | "CREATE" | "ERC20_TRANSFER";
  readonly from: Address;
  readonly to: Address;
  readonly amount: (sign: 1n | -1n) => Amount;
}

/**
 * The value's pair, also of zero, and what the calldata asks for: the pair of a token transfer, or
 * the operations of something to do with stake.
 */
function operationsOf(pending: PoolTransaction, registry: TokenRegistry) {
  const { from, to, valueAtoken, input: data } = pending;
  const movements = movementsOf(pending, registry);
  const first = 2 * movements.length;
  const intent = to === undefined ? undefined : intentOf(from, { to, valueAtoken, data }, registry);
  const staking = intent !== undefined && "call" in intent ? stakeOperations(intent) : [];
  const shifted = staking.map(({ related_operations: related, ...operation }, position) => ({
    ...operation,
    operation_identifier: { index: first + position },
    ...(related === undefined ? {} : { related_operations: [{ index: first }] }),
    status: INTENDED_STATUS,
  }));
  return [...pairsOf(movements), ...shifted];
}

function pairsOf(movements: readonly Movement[]) {
  return movements.flatMap(({ type, from, to, amount }, position) => {
    const first = 2 * position;
    return [
      {
        operation_identifier: { index: first },
        type,
        status: INTENDED_STATUS,
        account: accountIdentifier(from),
        amount: amount(-1n),
      },
      {
        operation_identifier: { index: first + 1 },
        related_operations: [{ index: first }],
        type,
        status: INTENDED_STATUS,
        account: accountIdentifier(to),
        amount: amount(1n),
      },
    ];
  });
}

function movementsOf(pending: PoolTransaction, registry: TokenRegistry): Movement[] {
  const { from, to, valueAtoken, input, nonce } = pending;
  const amount = (sign: 1n | -1n) => tokenAmount(sign * valueAtoken);
  if (to === undefined)
    return [{ type: "CREATE", from, to: contractAddressOf(from, nonce), amount }];
  const value: Movement = { type: "CALL", from, to, amount };
  const transfer = transferOf(from, { to, valueAtoken, data: input }, registry);
  if (transfer === undefined) return [value];
  const { token, amountUnits } = transfer;
  const tokens: Movement = {
    type: "ERC20_TRANSFER",
    from,
    to: transfer.to,
    amount: (sign) => currencyAmount(sign * amountUnits, token.currency),
  };
  return [value, tokens];
}

/** Numbers as decimal strings, as in the metadata of mined transactions. */
function metadataOf(pending: PoolTransaction): Readonly<Record<string, string | number>> {
  const { nonce, gasLimit, gasPriceAtoken, missingNonce, waitReason, input, to } = pending;
  const isQueued = missingNonce !== undefined || waitReason !== undefined;
  const memo = to === undefined ? undefined : memoOfData(input);
  return {
    pool_status: isQueued ? "queued" : "pending",
    ...(missingNonce === undefined ? {} : { missing_nonce: missingNonce.toString() }),
    ...(waitReason === undefined ? {} : { wait_reason: waitReason }),
    nonce: nonce.toString(),
    gas_price: gasPriceAtoken.toString(),
    gas_limit: gasLimit.toString(),
    max_fee: (gasLimit * gasPriceAtoken).toString(),
    ...(memo === undefined ? {} : { memo }),
  };
}
