/** eth_fillTransaction: what a client leaves open of a transaction that it will sign. */
import { bytesToHex } from "../../../../chain/hex.js";
import {
  effectiveGasPriceAtoken,
  type GasFees,
  type TransactionType,
  withoutSignature,
} from "../../../../chain/transaction.js";
import type { Atoken } from "../../../../chain/units.js";
import type { CallRequest, CallWorkers } from "../../../execution/calls/call-port.js";
import type { TransactionPool } from "../../../mempool/pool-port.js";
import type { ChainView } from "../../../view/chain-view.js";
import { unsignedTransactionJson } from "../../../view/evm-json.js";
import { callRequestParser } from "../arguments/call.js";
import { RpcFault } from "../errors.js";
import { type MethodEntries, method, RawJson } from "../method.js";
import { field, optionalField, parseObject, parseUint256, parseUint64 } from "../params.js";
import { executionFault } from "./call-methods.js";

/** What these methods read. */
export interface FillMethodPorts {
  readonly view: ChainView;
  readonly pool: TransactionPool;
  readonly calls: CallWorkers;
  readonly chainId: bigint;
  readonly suggestedGasPriceAtoken: Atoken;
}

/** Type and fees of a transaction, complete. */
interface Pricing extends GasFees {
  readonly type: TransactionType;
}

/** Clients take the answer as it is: it is a type 0 unless they name what only others have. */
export function fillMethods(ports: FillMethodPorts): MethodEntries {
  const { view, pool, calls, chainId, suggestedGasPriceAtoken } = ports;
  const parseCall = callRequestParser(chainId);
  return [
    method("eth_fillTransaction", 1, async (params, { signal, client }) => {
      const request = params.required(0, parseCall);
      const pricing = params.required(0, (value) =>
        parsePricing(value, request, suggestedGasPriceAtoken),
      );
      const { from, to, data, valueAtoken, accessList } = request;
      if (to === undefined && data.length === 0) {
        throw new RpcFault("SERVER_ERROR", "contract creation without any data provided");
      }
      const estimate = async () => {
        const { maxFeePerGasAtoken, maxPriorityFeePerGasAtoken } = pricing;
        // Those that were filled in, not those of the request: what it left open counts as 0 there.
        const dynamicFees = { maxFeePerGasAtoken, maxPriorityFeePerGasAtoken };
        const gasPriceAtoken = effectiveGasPriceAtoken(pricing);
        const priced = { ...request, gasPriceAtoken, dynamicFees };
        const { height } = view.head();
        const result = await calls.estimateGas(priced, height, { signal, client });
        if (result.outcome !== "success") throw executionFault(result);
        return result.gas;
      };
      const tx = withoutSignature({
        ...pricing,
        chainId,
        nonce: request.nonce ?? pool.pendingNonce(from),
        gasLimit: request.gasLimit ?? (await estimate()),
        to,
        valueAtoken,
        data,
        accessList,
      });
      const json = unsignedTransactionJson({ tx, from });
      return new RawJson(`{"raw":"${bytesToHex(tx.raw)}","tx":${json}}`);
    }),
  ];
}

/** The type that the named members stand for, and the fees that were not named. */
function parsePricing(value: unknown, request: CallRequest, suggestedAtoken: Atoken): Pricing {
  const fields = parseObject(value);
  const named = optionalField(fields, "type", parseUint64);
  if (named !== undefined && named > 2n) {
    throw new RpcFault("SERVER_ERROR", "transaction type not supported");
  }
  const hasPrice = field(fields, "gasPrice") !== undefined;
  if (request.dynamicFees !== undefined || (named === 2n && !hasPrice)) {
    const maxFee = optionalField(fields, "maxFeePerGas", parseUint256);
    const tip = optionalField(fields, "maxPriorityFeePerGas", parseUint256);
    const tipAtoken = tip ?? smaller(suggestedAtoken, maxFee ?? suggestedAtoken);
    // No base fee comes on top of the tip.
    const maxFeeAtoken = maxFee ?? tipAtoken;
    return { type: 2, maxFeePerGasAtoken: maxFeeAtoken, maxPriorityFeePerGasAtoken: tipAtoken };
  }
  const priceAtoken = hasPrice ? request.gasPriceAtoken : suggestedAtoken;
  return {
    type: named === 1n || request.accessList.length > 0 ? 1 : 0,
    maxFeePerGasAtoken: priceAtoken,
    maxPriorityFeePerGasAtoken: priceAtoken,
  };
}

function smaller(left: bigint, right: bigint): bigint {
  return left < right ? left : right;
}
