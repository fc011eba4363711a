/**
 * Which addresses run code. An answer is all of the code, and most addresses have none: all are asked about
 * together, and few at a time where the answers have no room together.
 */
import type { Address } from "../../chain/address.js";
import { type Height, toQuantity } from "../../chain/hex.js";
import { readHex } from "../../rpc-client/answer-fields.js";
import { isHeaderMissing, isTooMuch, isTooMuchAtOnce, RpcError } from "../../rpc-client/errors.js";
import { type JsonRpcClient, resultOf, type RpcOutcome } from "../../rpc-client/json-rpc.js";

/** Whether a payment to an address runs code; undefined where the node does not have the block. */
export type CodeAnswer = boolean | "too-much" | undefined;

/** Addresses of a small exchange: with the largest code that there is its answer is below a megabyte. */
const ADDRESSES_PER_CALL = 16;

/** What a node knew of addresses by its answers, and what kept it from the rest. */
interface Answers {
  readonly known: Map<Address, CodeAnswer>;
  /** That it has no room now, or answers no more for a while, whatever is asked for. */
  limit: RpcError | undefined;
}

/**
 * Answers in the order of the addresses; each is asked about once, however often it is named.
 * @throws the node's refusal where it had no room for any of them; NodeFault, RpcError
 */
export async function askHaveCode(
  rpc: JsonRpcClient,
  addresses: readonly Address[],
  view: { readonly signal: AbortSignal; readonly at: Height },
): Promise<CodeAnswer[]> {
  if (addresses.length === 0) return [];
  const answers: Answers = { known: new Map(), limit: undefined };
  const { known } = answers;
  await askPart(rpc, [...new Set(addresses)], view, answers);
  // One with much code may have taken the room of all others.
  const again = [...known.keys()].filter((address) => known.get(address) === "too-much");
  for (let start = 0; start < again.length; start += ADDRESSES_PER_CALL) {
    await askPart(rpc, again.slice(start, start + ADDRESSES_PER_CALL), view, answers);
    // Every single question would be refused alike: no use in going on.
    if (answers.limit !== undefined && isAllTooMuch(known)) throw answers.limit;
  }
  return addresses.map((address) => known.get(address));
}

function isAllTooMuch(known: ReadonlyMap<Address, CodeAnswer>): boolean {
  return [...known.values()].every((answer) => answer === "too-much");
}

async function askPart(
  rpc: JsonRpcClient,
  part: readonly Address[],
  { signal, at }: { readonly signal: AbortSignal; readonly at: Height },
  answers: Answers,
): Promise<void> {
  const calls = part.map((address) => ({
    method: "eth_getCode",
    params: [address, toQuantity(at)],
  }));
  const takeRefusal = (address: Address, error: unknown) => {
    if (!isTooMuchAtOnce(error)) throw error;
    answers.known.set(address, "too-much");
    if (!isTooMuch(error) && error instanceof RpcError) answers.limit = error;
  };
  let outcomes: readonly RpcOutcome[];
  try {
    outcomes = await rpc.batch(calls, { signal });
  } catch (error) {
    for (const address of part) takeRefusal(address, error);
    return;
  }
  for (const [index, address] of part.entries()) {
    const outcome = outcomes[index];
    if (outcome === undefined) continue;
    // A late node behind a balancer: what has a nonce already goes on.
    if (!outcome.ok && isHeaderMissing(outcome.error)) answers.known.set(address, undefined);
    else if (outcome.ok) answers.known.set(address, readHex(resultOf(outcome), "code") !== "0x");
    else takeRefusal(address, outcome.error);
  }
}
