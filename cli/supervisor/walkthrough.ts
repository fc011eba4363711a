/**
 * The main job before the reader's eyes: a deposit is credited, a withdrawal is paid. Every line
 * is printed when it has happened; at the end all of it is read again from chain and ledger.
 */
import { CREDIT_CONFIRMATIONS } from "../../chain/confirmations.js";
import { randomUUID } from "node:crypto";
import { type Address, toBech32, toChecksumAddress } from "../../chain/address.js";
import { privateKeyToAddress } from "../../chain/signing/account-key.js";
import { bytesToHex, type Hash32, type Height } from "../../chain/hex.js";
import { signLegacy } from "../../chain/transaction.js";
import { ATOKEN_PER_TOKEN, atokenToToken } from "../../chain/units.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import type { Clock } from "../../runtime/process/clock.js";
import { amountText } from "../amount-text.js";
import { CliError } from "../errors.js";
import type {
  BalanceView,
  DepositView,
  ExchangeClient,
  WithdrawalView,
} from "../probe/exchange-client.js";
import { waitFor } from "../probe/waiting.js";
import { createPrivateKey } from "../home/keys/wallet-keys.js";

/** What is sent to the deposit address, atoken. */
const DEMO_DEPOSIT_ATOKEN = ATOKEN_PER_TOKEN;

/** What is withdrawn again, atoken. */
const DEMO_WITHDRAWAL_ATOKEN = ATOKEN_PER_TOKEN / 4n;

/** Margin on the estimated gas, per cent: the account may change between estimate and block. */
const GAS_MARGIN_PERCENT = 20n;

/** How often the APIs are asked; a block takes 2 s. */
const POLL_MS = 100;

/** Longest time for one step; with 2-second blocks each takes below ten seconds. */
const STEP_TIMEOUT_MS = 90_000;

/** What the walk-through works with. */
export interface WalkthroughOptions {
  readonly evm: EvmClient;
  readonly exchange: ExchangeClient;
  /** 32 bytes; pays for the deposit. */
  readonly faucetKey: Uint8Array;
  readonly print: (line: string) => void;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly stepTimeoutMs?: number;
}

/** What was done, to be checked and shown. */
export interface WalkthroughResult {
  readonly customerId: string;
  readonly depositAddress: Address;
  readonly depositHash: Hash32;
  readonly deposit: DepositView;
  readonly destination: Address;
  readonly withdrawal: WithdrawalView & { readonly txHash: Hash32; readonly blockNumber: number };
}

/**
 * Does the main job once.
 * @throws STEP_FAILED naming the step and why, CLIENT_FAILED, and the RPC client's faults
 */
export async function runWalkthrough(options: WalkthroughOptions): Promise<WalkthroughResult> {
  const { exchange, print, signal } = options;
  const customerId = await chooseCustomer(options);
  const depositAddress = await exchange.createAddress(customerId, signal);
  const shown = toChecksumAddress(depositAddress);
  print(row("address", `${shown} (${toBech32(depositAddress)}) for customer ${customerId}`));
  const depositHash = await sendFromFaucet(options, depositAddress);
  const amount = atokenToToken(DEMO_DEPOSIT_ATOKEN);
  print(row("deposit", `${amount} TOKEN sent in the legacy transaction ${depositHash}`));
  const deposit = await followDeposit(options, depositAddress, depositHash);
  const destination = privateKeyToAddress(createPrivateKey());
  const accepted = await exchange.requestWithdrawal(
    {
      customerId,
      to: destination,
      amountAtoken: DEMO_WITHDRAWAL_ATOKEN,
      idempotencyKey: `demo-${randomUUID()}`,
    },
    signal,
  );
  const wanted = `${atokenToToken(DEMO_WITHDRAWAL_ATOKEN)} TOKEN to ${toChecksumAddress(destination)}`;
  print(row("withdrawal", `${wanted} requested, id ${accepted.id}`));
  if (accepted.feeUnits > 0n) {
    print(row("service fee", `${atokenToToken(accepted.feeUnits)} TOKEN, by config/policy.json`));
  }
  const withdrawal = await followWithdrawal(options, accepted.id);
  return { customerId, depositAddress, depositHash, deposit, destination, withdrawal };
}

/**
 * Reads everything that was printed again: receipts and balances from the chain, the customer's
 * balance from the ledger.
 * @returns the customer's balances
 * @throws NOT_TRUE naming the claim
 */
export async function verifyWalkthrough(
  result: WalkthroughResult,
  options: WalkthroughOptions,
): Promise<readonly BalanceView[]> {
  const { evm, exchange, signal } = options;
  const { deposit, withdrawal } = result;
  await checkTransaction(options, {
    hash: result.depositHash,
    to: result.depositAddress,
    height: deposit.blockNumber,
    blockHash: deposit.blockHash,
    what: "the deposit",
  });
  await checkTransaction(options, {
    hash: withdrawal.txHash,
    to: result.destination,
    height: withdrawal.blockNumber,
    what: "the withdrawal",
  });
  check(deposit.amountUnits === DEMO_DEPOSIT_ATOKEN, "the deposit has another amount");
  const paid = await evm.getBalance(result.destination, "latest", { signal });
  check(paid === DEMO_WITHDRAWAL_ATOKEN, `the destination holds ${paid} atoken`);
  const received = await evm.getBalance(result.depositAddress, deposit.blockNumber, { signal });
  check(received === DEMO_DEPOSIT_ATOKEN, `the deposit address holds ${received} atoken`);
  const balances = (await exchange.balances(result.customerId, signal)) ?? [];
  const token = balances.find(({ asset }) => asset === "TOKEN");
  const left = DEMO_DEPOSIT_ATOKEN - DEMO_WITHDRAWAL_ATOKEN - withdrawal.feeUnits;
  check(token?.availableUnits === left, `the ledger says ${token?.availableUnits} available`);
  check(token?.heldUnits === 0n, `the ledger says ${token?.heldUnits} held`);
  return balances;
}

/** Lines with the balances of a customer, one for each asset. */
export function describeBalances(customerId: string, balances: readonly BalanceView[]): string[] {
  return balances.map(({ asset, availableUnits, heldUnits, pendingUnits }) => {
    const parts = [
      `available ${amountText(asset, availableUnits)}`,
      `held ${amountText(asset, heldUnits)}`,
      `pending ${amountText(asset, pendingUnits)}`,
    ];
    return row("ledger", `${customerId}: ${parts.join(", ")}`);
  });
}

/** A line of the report: a name in a column of its own, then what happened. */
function row(name: string, text: string): string {
  return `  ${name.padEnd(11)} ${text}`;
}

/** "demo" the first time; later runs get customers of their own, so that their sums are exact. */
async function chooseCustomer(options: WalkthroughOptions): Promise<string> {
  const known = await options.exchange.balances("demo", options.signal);
  return known === undefined ? "demo" : `demo-${options.clock.nowMs().toString(36)}`;
}

function wait<T>(
  options: WalkthroughOptions,
  what: string,
  look: () => Promise<T | undefined>,
): Promise<T> {
  return waitFor(look, {
    what,
    timeoutMs: options.stepTimeoutMs ?? STEP_TIMEOUT_MS,
    pollMs: POLL_MS,
    clock: options.clock,
    signal: options.signal,
    onStillWaiting: (message) => options.print(row("", message)),
  });
}

async function sendFromFaucet(options: WalkthroughOptions, to: Address): Promise<Hash32> {
  const { evm, faucetKey, signal } = options;
  const from = privateKeyToAddress(faucetKey);
  const valueAtoken = DEMO_DEPOSIT_ATOKEN;
  const [chainId, nonce, gasPriceAtoken, gas] = await Promise.all([
    evm.chainId({ signal }),
    evm.getTransactionCount(from, "pending", { signal }),
    evm.gasPrice({ signal }),
    evm.estimateGas({ from, to, valueAtoken }, { signal }),
  ]);
  const gasLimit = (gas * (100n + GAS_MARGIN_PERCENT)) / 100n;
  const intent = {
    chainId,
    nonce,
    gasPriceAtoken,
    gasLimit,
    to,
    valueAtoken,
    data: new Uint8Array(0),
  };
  const raw = bytesToHex(signLegacy(intent, faucetKey));
  const [outcome] = await evm.sendRawTransactions([raw], { signal });
  if (outcome?.outcome === "accepted") return outcome.hash;
  const reason = outcome?.error.message ?? "no answer";
  throw new CliError("STEP_FAILED", `The node refused the faucet's transaction: ${reason}.`);
}

async function followDeposit(
  options: WalkthroughOptions,
  address: Address,
  hash: Hash32,
): Promise<DepositView> {
  const { exchange, print, signal } = options;
  let confirmed = 0;
  let isDetected = false;
  const report = (deposit: DepositView): void => {
    if (!isDetected) print(row("detected", `in block ${deposit.blockNumber}, id ${deposit.id}`));
    isDetected = true;
    while (confirmed < Math.min(deposit.confirmations, CREDIT_CONFIRMATIONS)) {
      confirmed += 1;
      print(row("confirmed", `${confirmed}/${CREDIT_CONFIRMATIONS}`));
    }
  };
  return wait(options, "the deposit to be credited", async () => {
    const deposits = await exchange.depositsTo(address, signal);
    const deposit = deposits.find(({ txHash }) => txHash === hash);
    if (deposit === undefined) return undefined;
    report(deposit);
    if (deposit.status === "detected") return undefined;
    if (deposit.status !== "credited") {
      throw new CliError("STEP_FAILED", `The deposit is "${deposit.status}", not credited.`);
    }
    const amount = atokenToToken(deposit.amountUnits);
    print(row("credited", `${amount} TOKEN to the customer's balance in the ledger`));
    return deposit;
  });
}

async function followWithdrawal(
  options: WalkthroughOptions,
  id: string,
): Promise<WalkthroughResult["withdrawal"]> {
  const { exchange, print, signal } = options;
  const said = new Set<string>();
  const once = (name: string, text: string): void => {
    if (!said.has(name)) print(row(name, text));
    said.add(name);
  };
  return wait(options, "the withdrawal to be settled", async () => {
    const seen = await exchange.withdrawal(id, signal);
    const { nonce, txHash, blockNumber, status } = seen;
    if (nonce !== null && nonce !== undefined) once("slot", `nonce ${nonce} of the hot wallet`);
    if (txHash) once("hash", txHash);
    if (typeof blockNumber === "number") once("included", `in block ${blockNumber}`);
    if (status === "pending_approval") once("approvals", `the policy asks persons first: ${id}`);
    if (["failed", "rejected", "cancelled", "frozen"].includes(status)) {
      throw new CliError("STEP_FAILED", `The withdrawal ${id} is "${status}", not settled.`);
    }
    if (status !== "settled") return undefined;
    if (!txHash || typeof blockNumber !== "number") {
      throw new CliError("STEP_FAILED", `The withdrawal ${id} is settled without a transaction.`);
    }
    once("settled", "in the ledger; the network fee is the exchange's expense");
    return { ...seen, txHash, blockNumber };
  });
}

function check(isTrue: boolean, claim: string): void {
  if (!isTrue) throw new CliError("NOT_TRUE", `What was printed is not true: ${claim}.`);
}

async function checkTransaction(
  options: WalkthroughOptions,
  expected: { hash: Hash32; to: Address; height: Height; blockHash?: Hash32; what: string },
): Promise<void> {
  const { evm, signal } = options;
  const receipt = await evm.getTransactionReceipt(expected.hash, { signal });
  const { what } = expected;
  check(receipt !== undefined, `${what} ${expected.hash} has no receipt`);
  if (receipt === undefined) return;
  check(receipt.status === 1, `${what} ${expected.hash} failed on chain`);
  check(receipt.to === expected.to, `${what} went to another address`);
  check(receipt.height === expected.height, `${what} is in another block than the API says`);
  const header = await evm.getBlockHeader(receipt.height, { signal });
  check(header?.hash === receipt.blockHash, `${what} is in a block that is not on the chain`);
  const isSame = expected.blockHash === undefined || expected.blockHash === receipt.blockHash;
  check(isSame, `${what} is in another block than the API says`);
}
