/**
 * Which addresses run code. An answer is all of the code, and most addresses have none: all are asked about
 * together, and few at a time where the answers have no room together.
 */
import type { Address } from "../../chain/address.js";
import { type Height, toQuantity } from "../../chain/hex.js";
import { readHex } from "../../rpc-client/answer-fields.js";
import { isHeaderMissing, isTooMuchAtOnce } from "../../rpc-client/errors.js";
import { type JsonRpcClient, resultOf, type RpcOutcome } from "../../rpc-client/json-rpc.js";

/** Whether a payment to an address runs code; undefined where the node does not have the block. */
export type CodeAnswer = boolean | "too-much" | undefined;

/** Addresses of a small exchange: with the largest code that there is its answer is below a megabyte. */
const FEW = 16;

/** Answers in the order of the addresses; each is asked about once, however often it is named. */
export async function askHaveCode(
  rpc: JsonRpcClient,
  addresses: readonly Address[],
  view: { readonly signal: AbortSignal; readonly at: Height },
): Promise<CodeAnswer[]> {
  if (addresses.length === 0) return [];
  const known = new Map<Address, CodeAnswer>();
  const ask = async (part: readonly Address[]) => {
    const answers = await askPart(rpc, part, view);
    for (const [index, address] of part.entries()) known.set(address, answers[index]);
  };
  await ask([...new Set(addresses)]);
  // One with much code may have taken the room of all others.
  const again = [...known.keys()].filter((address) => known.get(address) === "too-much");
  for (let start = 0; start < again.length; start += FEW)
    await ask(again.slice(start, start + FEW));
  return addresses.map((address) => known.get(address));
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
