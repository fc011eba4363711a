/** Which addresses run code: each is asked about once, few at a time, as an answer is all of the code. */
import type { Address } from "../../chain/address.js";
import { type Height, toQuantity } from "../../chain/hex.js";
import { readHex } from "../../rpc-client/answer-fields.js";
import { isHeaderMissing, isTooMuchAtOnce } from "../../rpc-client/errors.js";
import { type JsonRpcClient, resultOf, type RpcOutcome } from "../../rpc-client/json-rpc.js";

/** Whether a payment to an address runs code; undefined where the node does not have the block. */
export type CodeAnswer = boolean | "too-much" | undefined;

/**
 * Addresses of one exchange. With the largest code that there is its answer is below a megabyte: larger ones
 * wait for others at this chain's node, and may be refused.
 */
const ADDRESSES_PER_CALL = 16;

/** Exchanges at the same time, so that a distant node costs little time. */
const CALLS_AT_ONCE = 4;

/** Answers in the order of the addresses; the same for those that are named more than once. */
export async function askHaveCode(
  rpc: JsonRpcClient,
  addresses: readonly Address[],
  { signal, at }: { readonly signal: AbortSignal; readonly at: Height },
): Promise<CodeAnswer[]> {
  const distinct = [...new Set(addresses)];
  const parts: Address[][] = [];
  for (let start = 0; start < distinct.length; start += ADDRESSES_PER_CALL) {
    parts.push(distinct.slice(start, start + ADDRESSES_PER_CALL));
  }
  const answers: CodeAnswer[] = [];
  for (let next = 0; next < parts.length; next += CALLS_AT_ONCE) {
    const some = parts.slice(next, next + CALLS_AT_ONCE);
    const asked = await Promise.all(some.map((part) => askPart(rpc, part, { signal, at })));
    answers.push(...asked.flat());
  }
  const byAddress = new Map(distinct.map((address, index) => [address, answers[index]]));
  return addresses.map((address) => byAddress.get(address));
}

async function askPart(
  rpc: JsonRpcClient,
  part: readonly Address[],
  { signal, at }: { readonly signal: AbortSignal; readonly at: Height },
): Promise<CodeAnswer[]> {
  const calls = part.map((address) => ({
    method: "eth_getCode",
    params: [address, toQuantity(at)],
  }));
  try {
    return (await rpc.batch(calls, { signal })).map(meaningOf);
  } catch (error) {
    if (!isTooMuchAtOnce(error)) throw error;
    return part.map(() => "too-much");
  }
}

function meaningOf(outcome: RpcOutcome): CodeAnswer {
  // A late node behind a balancer: what has a nonce already goes on.
  if (!outcome.ok && isHeaderMissing(outcome.error)) return undefined;
  if (!outcome.ok && isTooMuchAtOnce(outcome.error)) return "too-much";
  return readHex(resultOf(outcome), "code") !== "0x";
}
