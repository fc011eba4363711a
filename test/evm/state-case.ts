/**
 * One case through one engine, with Ethereum's own fees around it: the sender pays for the gas, the
 * block's beneficiary gets the price above the base fee. The node's fees are another rule (D3).
 */
import { type Address, addressToBytes } from "../../chain/address.js";
import { keccak256Hex } from "../../chain/hashes.js";
import { hexToBytes } from "../../chain/hex.js";
import type { Log } from "../../chain/receipt.js";
import { encodeRlp } from "../../chain/encoding/rlp-writer.js";
import { intrinsicGas, MAX_INITCODE_BYTES } from "../../chain/transaction-rules.js";
import type { BlockContext } from "../../node/execution/evm/evm.js";
import type { TransactionEngine } from "../../node/execution/transaction-engine.js";
import { JournaledState } from "../../node/state/journaled-state.js";
import { EMPTY_ACCOUNT, isEmptyAccount } from "../../node/store/account-record.js";
import type { CreateEngine } from "./engines.js";
import type { FixtureBlock, FixtureTransaction, StateCase } from "./state-fixture.js";
import { FixtureState } from "./state-world.js";

/** EIP-3529. */
const MAX_REFUND_QUOTIENT = 5n;
const LAST_NONCE = 2n ** 64n - 1n;
const MAX_WORD = 2n ** 256n - 1n;

/** EIP-4844. */
const BLOB_GAS = 131_072n;
const MAX_BLOBS = 6;
const BLOB_UPDATE_FRACTION = 3_338_477n;

/** @returns what is wrong; undefined where root and logs are those of the fixture */
export async function failureOf(
  test: StateCase,
  create: CreateEngine,
): Promise<string | undefined> {
  const committed = new FixtureState(test.accounts);
  const state = new JournaledState(committed);
  const refusal = refusalOf(test, state);
  if ((refusal !== undefined) !== (test.exception !== undefined)) {
    return `must ${test.exception ?? "be included"}, but ${refusal ?? "was included"}`;
  }
  const logs = refusal === undefined ? await include(test, state, await create(state)) : [];
  const root = committed.rootAfter(state);
  const logsHash = hashOf(logs);
  if (logsHash !== test.logsHash) return `logs ${logsHash}, not ${test.logsHash}`;
  return root === test.stateRoot ? undefined : `state root ${root}, not ${test.stateRoot}`;
}

function hashOf(logs: readonly Log[]): string {
  return keccak256Hex(
    encodeRlp(
      logs.map(({ address, topics, data }) => [
        addressToBytes(address),
        topics.map((topic) => hexToBytes(topic)),
        data,
      ]),
    ),
  );
}

/** Why the transaction must stay out, by Ethereum's rules. */
function refusalOf({ block, transaction }: StateCase, state: JournaledState): string | undefined {
  const { from, maxFee, maxPriorityFee, gasLimit, value, data, to } = transaction;
  const sender = state.accountNow(from) ?? EMPTY_ACCOUNT;
  const cost = gasLimit * maxFee + value + blobCostOf(block, transaction);
  if (maxPriorityFee > maxFee) return "priority fee above the most";
  if (maxFee < block.baseFee) return "fee below the base fee";
  if (gasLimit > block.gasLimit) return "gas above the block's";
  if (sender.codeHash !== EMPTY_ACCOUNT.codeHash) return "sender is a contract";
  if (transaction.nonce === LAST_NONCE) return "nonce is the last one";
  if (transaction.nonce !== sender.nonce) return "another nonce";
  if (value > MAX_WORD || cost > MAX_WORD) return "cost beyond 256 bits";
  if (sender.balanceAtoken < cost) return "not enough coins";
  if (to === undefined && data.length > MAX_INITCODE_BYTES) return "creation code too large";
  if (gasLimit < intrinsicGas(transaction)) return "gas below the intrinsic gas";
  return blobRefusalOf(transaction);
}

function blobRefusalOf({ blobHashes, to }: FixtureTransaction): string | undefined {
  if (blobHashes === undefined) return undefined;
  if (to === undefined) return "a creation with blobs";
  if (blobHashes.length === 0) return "no blobs";
  if (blobHashes.length > MAX_BLOBS) return "too many blobs";
  return blobHashes.every((hash) => hash.startsWith("0x01")) ? undefined : "a hash of no blob";
}

/** EIP-4844: fee of blob gas at an excess (a Taylor series in integers). */
function blobFeeOf({ excessBlobGas }: FixtureBlock): bigint {
  let output = 0n;
  let term = BLOB_UPDATE_FRACTION;
  for (let n = 1n; term > 0n; n += 1n) {
    output += term;
    term = (term * excessBlobGas) / (BLOB_UPDATE_FRACTION * n);
  }
  return output / BLOB_UPDATE_FRACTION;
}

function blobCostOf(block: FixtureBlock, { blobHashes }: FixtureTransaction): bigint {
  return blobFeeOf(block) * BLOB_GAS * BigInt(blobHashes?.length ?? 0);
}

async function include(
  { block, transaction }: StateCase,
  state: JournaledState,
  engine: TransactionEngine,
): Promise<readonly Log[]> {
  const { from, gasLimit, baseFee, price } = { ...transaction, ...pricesOf(block, transaction) };
  const intrinsic = intrinsicGas(transaction);
  state.checkpoint();
  state.moveBalance(from, -(gasLimit * price) - blobCostOf(block, transaction));
  const result = await engine.run(
    {
      from,
      to: transaction.to,
      valueAtoken: transaction.value,
      data: transaction.data,
      gasLimit: gasLimit - intrinsic,
      gasPriceAtoken: price,
      accessList: transaction.accessList,
    },
    contextOf(block),
    { limitNs: Number.POSITIVE_INFINITY },
  );
  const spent = intrinsic + result.gasUsed;
  const most = spent / MAX_REFUND_QUOTIENT;
  const gasUsed = spent - (result.gasRefund < most ? result.gasRefund : most);
  state.moveBalance(from, (gasLimit - gasUsed) * price);
  pay(state, block.coinbase, gasUsed * (price - baseFee));
  for (const address of result.destroyed) {
    state.putAccount(address, undefined);
    state.wipeStorage(address);
  }
  await engine.finish(true);
  state.commit();
  return result.logs;
}

function pricesOf(
  { baseFee }: FixtureBlock,
  { maxFee, maxPriorityFee }: FixtureTransaction,
): { readonly baseFee: bigint; readonly price: bigint } {
  const price = maxFee < baseFee + maxPriorityFee ? maxFee : baseFee + maxPriorityFee;
  return { baseFee, price };
}

/** Paying nothing touches the account all the same: an empty one goes. */
function pay(state: JournaledState, address: Address, amount: bigint): void {
  const account = state.accountNow(address);
  if (amount > 0n) state.moveBalance(address, amount);
  else if (account !== undefined && isEmptyAccount(account)) state.putAccount(address, undefined);
}

function contextOf(block: FixtureBlock): BlockContext {
  return {
    height: block.height,
    timestampSeconds: block.timestampSeconds,
    coinbase: block.coinbase,
    gasLimit: block.gasLimit,
    mixHash: block.random,
    baseFeeAtoken: block.baseFee,
    blobBaseFeeAtoken: blobFeeOf(block),
    blockHash: (height) => keccak256Hex(Buffer.from(String(height))),
  };
}
