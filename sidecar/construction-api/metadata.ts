/** What the network has to say about an intent: nonce, gas, price, and whether it can be paid. */
import type { Address } from "../../chain/address.js";
import { EMPTY_RECEIVER_GAS } from "../../chain/evm/erc20.js";
import type { Network } from "../../chain/networks.js";
import { MAX_GAS } from "../../chain/transaction-rules.js";
import type { Atoken } from "../../chain/units.js";
import { RPC_CODES } from "../../chain/evm/rpc-codes.js";
import { RpcError } from "../../rpc-client/errors.js";
import type { EvmClient, PoolRules } from "../../rpc-client/evm-client.js";
import type { RpcOptions } from "../../rpc-client/json-rpc.js";
import { isExecutionFailure } from "../../rpc-client/tokens/token-balances.js";
import { LIGHT_READ_TIMEOUT_MS } from "../index/head-ticker.js";
import type { IndexReader } from "../index/index-reader.js";
import { revertDetails, SidecarError } from "../rosetta/errors.js";
import { currencyAmount } from "../rosetta/identifiers.js";
import { CLAIM_CURRENCY } from "../rosetta/sub-accounts.js";
import { callOf, type EvmCall, type Intent } from "../rosetta/evm-call.js";
import type { TransactionFacts } from "./opaque-tx.js";
import { multipliedPrice, type Overrides } from "./options.js";
import { checkFree, checkFunds, fundsFor } from "./payer-funds.js";

/** Policy of suggested fees. */
export interface FeePolicy {
  /** Added to every estimate, percent: state may change until the transaction is mined. */
  readonly gasMarginPercent: number;
  /** Lowest price that is suggested or taken, atoken per gas, where the node's own is no higher. */
  readonly minimumGasPriceAtoken: Atoken;
}

/** Whom the facts are asked from, and how they are judged. */
export interface FactSource {
  readonly network: Network;
  readonly client: EvmClient;
  readonly feePolicy: FeePolicy;
  readonly quarantineOf: IndexReader["quarantineOf"];
  /**
   * Returns when the index has judged tokens up to the node's newest block: before that a quarantined one
   * is not known. @throws INDEX_BEHIND, NODE_FAULT
   */
  readonly judged: () => Promise<void>;
}

/** What the node says of prices, atoken per gas. */
interface PriceTold extends Pick<PoolRules, "minimumGasPriceAtoken"> {
  /** Where the caller chose none. */
  readonly suggestedAtoken: Atoken;
}

/**
 * A node of another chain or one that is behind would give a wrong nonce, and judge a transaction
 * by old state.
 * @throws NODE_WRONG_CHAIN, NODE_SYNCING
 */
export async function checkNode(
  { client, network }: Pick<FactSource, "client" | "network">,
  rpc: RpcOptions,
): Promise<void> {
  const light = { ...rpc, timeoutMs: LIGHT_READ_TIMEOUT_MS };
  const [chainId, isSyncing] = await Promise.all([client.chainId(light), client.isSyncing(light)]);
  if (chainId !== network.evmChainId) {
    throw new SidecarError("NODE_WRONG_CHAIN", {
      got: chainId.toString(),
      expected: network.evmChainId.toString(),
    });
  }
  if (isSyncing) throw new SidecarError("NODE_SYNCING");
}

/**
 * Nonce, gas and price as chosen by the caller or told by the node; nothing is reserved. What the
 * sender cannot pay is refused before the node is asked for an estimate, which would only revert.
 * @throws NODE_WRONG_CHAIN, NODE_SYNCING, INSUFFICIENT_FUNDS, MAX_FEE_EXCEEDED, CALL_REVERTED,
 * GAS_LIMIT_EXCEEDED, INTRINSIC_GAS_TOO_LOW, TOKEN_UNAVAILABLE, GAS_PRICE_TOO_LOW; of tokens INDEX_BEHIND
 */
export async function chooseFacts(
  source: FactSource,
  { intent, overrides }: { readonly intent: Intent; readonly overrides: Overrides },
  rpc: RpcOptions,
): Promise<TransactionFacts> {
  const { client, network } = source;
  await checkNode(source, rpc);
  await checkQuarantine(source, intent);
  const call = callOf(intent, overrides.data);
  const [sender, rules, suggestedAtoken] = await Promise.all([
    client.senderState(intent.from, rpc),
    client.poolRules(rpc),
    overrides.gasPriceAtoken === undefined ? client.gasPrice(rpc) : 0n,
    checkTokenBalance(client, intent, rpc),
    checkStake(client, intent, rpc),
  ]);
  const { transactionGas: mostGas = MAX_GAS } = rules;
  const gasPriceAtoken = choosePrice(source.feePolicy, overrides, { ...rules, suggestedAtoken });
  const nonce = overrides.nonce ?? sender.pendingNonce;
  const funds = fundsFor(sender, nonce);
  const spentAtoken = call.valueAtoken + delegatedAtoken(intent);
  checkFunds(funds, spentAtoken);
  checkChosenGas(overrides.gasLimit, mostGas);
  if (overrides.gasLimit !== undefined && nonce === sender.nextNonce) {
    await checkCall(client, { from: intent.from, ...call, gasLimit: overrides.gasLimit }, rpc);
  }
  const gasLimit = overrides.gasLimit ?? (await estimate(source, { intent, call, mostGas }, rpc));
  const feeAtoken = gasLimit * gasPriceAtoken;
  if (overrides.maxFeeAtoken !== undefined && feeAtoken > overrides.maxFeeAtoken) {
    throw new SidecarError("MAX_FEE_EXCEEDED", {
      fee: feeAtoken.toString(),
      max_fee: overrides.maxFeeAtoken.toString(),
    });
  }
  checkFunds(funds, spentAtoken + feeAtoken);
  const costAtoken = call.valueAtoken + feeAtoken;
  await checkFree(client, { from: intent.from, costAtoken, funds }, rpc);
  return { chainId: network.evmChainId, nonce, gasPriceAtoken, gasLimit, data: call.data };
}

/**
 * The price as chosen or suggested, of the node's minimum and the server's own at least the larger one.
 * @throws GAS_PRICE_TOO_LOW where one was chosen
 */
function choosePrice(
  { minimumGasPriceAtoken: ownAtoken }: FeePolicy,
  { gasPriceAtoken, feeMultiplier }: Overrides,
  { suggestedAtoken, minimumGasPriceAtoken: toldAtoken = 0n }: PriceTold,
): Atoken {
  const minimumAtoken = toldAtoken > ownAtoken ? toldAtoken : ownAtoken;
  const wantedAtoken = gasPriceAtoken ?? multipliedPrice(suggestedAtoken, feeMultiplier);
  if (wantedAtoken >= minimumAtoken) return wantedAtoken;
  if (gasPriceAtoken === undefined) return minimumAtoken;
  throw new SidecarError("GAS_PRICE_TOO_LOW", {
    gas_price: gasPriceAtoken.toString(),
    minimum: minimumAtoken.toString(),
  });
}

/**
 * Blocks have no operations of a quarantined token: its transfer would be mined, and to everybody who
 * reads them it would look as if nothing had been paid.
 */
async function checkQuarantine(
  { quarantineOf, judged }: FactSource,
  intent: Intent,
): Promise<void> {
  if (intent.type !== "ERC20_TRANSFER") return;
  await judged();
  const quarantine = quarantineOf(intent.token.contractAddress);
  if (quarantine === undefined) return;
  throw new SidecarError("TOKEN_UNAVAILABLE", {
    currency: intent.token.currency,
    quarantined_from_index: quarantine.height,
    reason: quarantine.reason,
  });
}

/**
 * Tokens are asked of their contract. One that is not there would take the call and move nothing,
 * so it is refused here: no estimate notices.
 */
async function checkTokenBalance(
  client: EvmClient,
  intent: Intent,
  rpc: RpcOptions,
): Promise<void> {
  if (intent.type !== "ERC20_TRANSFER") return;
  const { token, from, amountUnits } = intent;
  const query = { token: token.contractAddress, account: from, at: "latest" } as const;
  const [balanceUnits] = await client.tokenBalances([query], rpc);
  const { currency } = token;
  if (balanceUnits === undefined) throw new SidecarError("TOKEN_UNAVAILABLE", { currency });
  if (balanceUnits >= amountUnits) return;
  const { value } = currencyAmount(balanceUnits, currency);
  const needed = amountUnits.toString();
  throw new SidecarError("INSUFFICIENT_FUNDS", { balance: value, needed, currency });
}

/** Coins that become stake: no value of the transaction tells them. */
function delegatedAtoken(intent: Intent): Atoken {
  return "call" in intent && intent.call.kind === "delegate" ? intent.call.amountAtoken : 0n;
}

/**
 * Stake that is to leave has to be there now: of an atoken more the chain would take what rounding
 * left, and another amount would leave than was asked for.
 */
async function checkStake(client: EvmClient, intent: Intent, rpc: RpcOptions): Promise<void> {
  if (!("call" in intent)) return;
  const { call, from: account } = intent;
  if (call.kind !== "undelegate" && call.kind !== "redelegate") return;
  const validator = "source" in call ? call.source : call.validator;
  const at = await client.blockNumber(rpc);
  const [answer] = await client.claims([{ kind: "staked", account, validator, at }], rpc);
  if (answer === undefined) throw new SidecarError("NODE_FAULT", { reason: "no answer" });
  if (!answer.ok) throw answer.error;
  const staked = answer.claim?.delegations.find((one) => one.validator === validator);
  const balance = staked?.amountAtoken ?? 0n;
  if (balance >= call.amountAtoken) return;
  throw new SidecarError("INSUFFICIENT_FUNDS", {
    balance: balance.toString(),
    needed: call.amountAtoken.toString(),
    currency: CLAIM_CURRENCY,
  });
}

/** What no node of the chain takes the caller would learn only after signing. */
function checkChosenGas(gasLimit: bigint | undefined, mostGas: bigint): void {
  if (gasLimit === undefined || gasLimit <= mostGas) return;
  throw new SidecarError("GAS_LIMIT_EXCEEDED", {
    gas_limit: gasLimit.toString(),
    allowed: mostGas.toString(),
  });
}

/**
 * Whether the newest state lets a call succeed with the gas that was chosen for it. Behind other
 * transactions of the sender nobody asks: they may bring what it needs, as an approval does.
 * @throws INTRINSIC_GAS_TOO_LOW where it needs more gas; what an estimate throws
 */
async function checkCall(
  client: EvmClient,
  call: EvmCall & { readonly from: Address; readonly gasLimit: bigint },
  rpc: RpcOptions,
): Promise<void> {
  try {
    await client.estimateGas(call, rpc);
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    const reason = error.nodeMessage;
    const [, allowance] = /gas required exceeds allowance \((\d+)\)/i.exec(reason) ?? [];
    if (allowance === undefined) throw estimateError(error);
    // Less than was chosen is what the node runs calls with at most: it cannot tell.
    if (BigInt(allowance) < call.gasLimit) return;
    const gas_limit = call.gasLimit.toString();
    throw new SidecarError("INTRINSIC_GAS_TOO_LOW", { gas_limit, reason }, error);
  }
}

async function estimate(
  { client, feePolicy }: FactSource,
  { intent, call, mostGas }: { intent: Intent; call: EvmCall; mostGas: bigint },
  rpc: RpcOptions,
): Promise<bigint> {
  const { from, type } = intent;
  try {
    const gas = await client.estimateGas({ from, ...call }, rpc);
    const room = type === "ERC20_TRANSFER" ? EMPTY_RECEIVER_GAS : 0n;
    const gasLimit = (gas * BigInt(100 + feePolicy.gasMarginPercent) + 99n) / 100n + room;
    return gasLimit < mostGas ? gasLimit : mostGas;
  } catch (error) {
    throw error instanceof RpcError ? estimateError(error) : error;
  }
}

function estimateError(error: RpcError): SidecarError | RpcError {
  const reason = error.nodeMessage;
  if (error.rpc.rpcCode === RPC_CODES.reverted) {
    return new SidecarError("CALL_REVERTED", { reason, ...revertDetails(error.rpc.data) }, error);
  }
  if (/insufficient funds/i.test(reason)) {
    return new SidecarError("INSUFFICIENT_FUNDS", { reason }, error);
  }
  if (/gas required exceeds allowance|out of compute/i.test(reason)) {
    return new SidecarError("GAS_LIMIT_EXCEEDED", { reason }, error);
  }
  // Code that is older than REVERT refuses by a jump to nowhere or by what is no instruction.
  return isExecutionFailure(error) ? new SidecarError("CALL_REVERTED", { reason }, error) : error;
}
