/** Gas price and fee history of a chain without a base fee (D1, D7). */
import type { BlockOutline } from "../../../../chain/block.js";
import { type Height, toQuantity } from "../../../../chain/hex.js";
import type { Atoken } from "../../../../chain/units.js";
import type { PaidGas } from "../../../view/block-pages.js";
import type { ChainView } from "../../../view/chain-view.js";
import { breathe } from "../../../../runtime/process/main-thread.js";
import { historyPruned, invalidParams, RpcFault } from "../errors.js";
import { type MethodEntries, method, type RpcResult } from "../method.js";
import { ParamError, parseBlockNumberOrTag, parseIndex, parseList } from "../params.js";
import { assertBlocks, findHeight } from "../reads.js";

/** Percentiles in one request, as in go-ethereum. */
const MAX_PERCENTILES = 100;

/** Digits of a gas ratio; the exact quotient is rounded there. */
const RATIO_SCALE = 1_000_000_000n;

/** The count of blocks: a quantity, or whatever else go-ethereum reads as one, decimals included. */
function parseBlockCount(value: unknown): number {
  const isLoose = typeof value === "string" && /^(0x0*[0-9a-f]{1,13}|[0-9]{1,15})$/i.test(value);
  const count = isLoose ? Number(value) : value;
  if (typeof count === "number" && Number.isSafeInteger(count) && count >= 0) return count;
  return parseIndex(value);
}

function parsePercentiles(value: unknown): readonly number[] {
  const list = parseList(value, MAX_PERCENTILES, (item) => {
    if (typeof item !== "number") throw new ParamError("expected a number");
    return item;
  });
  list.forEach((percentile, index) => {
    if (percentile < 0 || percentile > 100) {
      throw invalidParams(`invalid reward percentile: ${shown(percentile)}`);
    }
    const before = list[index - 1];
    if (before !== undefined && percentile <= before) {
      const pair = `#${index - 1}:${shown(before)} >= #${index}:${shown(percentile)}`;
      throw invalidParams(`invalid reward percentile: ${pair}`);
    }
  });
  return list;
}

/** As Go's `%f` writes it, which is in go-ethereum's texts. */
function shown(percentile: number): string {
  return percentile.toFixed(6);
}

/** eth_gasPrice, eth_maxPriorityFeePerGas and eth_feeHistory. */
export function feeMethods(
  view: ChainView,
  suggestedGasPriceAtoken: Atoken,
  maxBlocks: number,
): MethodEntries {
  const suggested = toQuantity(suggestedGasPriceAtoken);
  return [
    method("eth_gasPrice", 0, () => suggested),
    method("eth_maxPriorityFeePerGas", 0, () => suggested),
    method("eth_feeHistory", 3, async (params, { signal }) => {
      const count = Math.min(params.required(0, parseBlockCount), maxBlocks);
      const ref = params.required(1, parseBlockNumberOrTag);
      // Without percentiles there is no `reward` in the answer, as little as with an empty list.
      const percentiles = params.optional(2, parsePercentiles) ?? [];
      const newest = findHeight(view, ref);
      if (newest === undefined) {
        const requested = ref.kind === "height" ? ref.height : "unknown";
        throw new RpcFault(
          "SERVER_ERROR",
          `request beyond head block: requested ${requested}, head ${view.head().height}`,
        );
      }
      // Of no blocks none is the oldest: go-ethereum names block 0, and not one behind the head.
      const oldest = count === 0 ? 0 : oldestOf(view, newest, count);
      return feeHistory(view, { from: oldest, to: newest, count }, percentiles, signal);
    }),
  ];
}

/**
 * The oldest of so many blocks that is here: what is missing below it makes the history shorter (D7).
 * @throws HISTORY_PRUNED where the newest is missing, too
 */
function oldestOf(view: ChainView, newest: Height, count: number): Height {
  assertBlocks(view, { from: newest, to: newest });
  const wanted = Math.max(0, newest - count + 1);
  const { block } = view.oldest();
  return Math.max(wanted, 1) < block ? Math.min(block, newest) : wanted;
}

async function feeHistory(
  view: ChainView,
  range: { from: Height; to: Height; count: number },
  percentiles: readonly number[],
  signal: AbortSignal,
): Promise<RpcResult> {
  const gasUsedRatio: number[] = [];
  const reward: string[][] = [];
  if (range.count > 0) {
    for (let height = range.from; height <= range.to; height++) {
      await breathe(signal);
      const outline = view.outline(height);
      if (outline === undefined) throw historyPruned();
      gasUsedRatio.push(usedRatio(outline));
      if (percentiles.length > 0) {
        reward.push(rewards(outline, await paidPrices(view, height, signal), percentiles));
      }
    }
  }
  const baseFeePerGas = ["0x0", ...gasUsedRatio.map(() => "0x0")];
  const history = { oldestBlock: toQuantity(range.from), baseFeePerGas, gasUsedRatio };
  return percentiles.length === 0 ? history : { ...history, reward };
}

function usedRatio({ header }: BlockOutline): number {
  const { gasUsed, gasLimit } = header;
  if (gasLimit === 0n) return 0;
  return Number((gasUsed * RATIO_SCALE) / gasLimit) / Number(RATIO_SCALE);
}

/** What the transactions of a block paid, cheapest first. */
async function paidPrices(
  view: ChainView,
  height: Height,
  signal: AbortSignal,
): Promise<readonly PaidGas[]> {
  const paid: PaidGas[] = [];
  for (const page of view.pages(height)) {
    paid.push(...page.paidGas());
    await breathe(signal);
  }
  return paid.toSorted((left, right) =>
    left.priceAtoken < right.priceAtoken ? -1 : Number(left.priceAtoken > right.priceAtoken),
  );
}

/** Effective prices at percentiles of the gas used, cheapest first (execution-apis). */
function rewards(
  { header }: BlockOutline,
  paid: readonly PaidGas[],
  percentiles: readonly number[],
): string[] {
  if (paid.length === 0) return percentiles.map(() => "0x0");
  const at = (position: number) => {
    const found = paid[position];
    if (found === undefined) throw new RangeError(`the block paid for no gas at ${position}`);
    return found;
  };
  let position = 0;
  let sum = at(position).gasUsed;
  return percentiles.map((percentile) => {
    // Percentiles may have decimals: compared in millionths of the block's gas.
    const threshold = (header.gasUsed * BigInt(Math.round(percentile * 10_000))) / 1_000_000n;
    while (sum < threshold && position < paid.length - 1) {
      position += 1;
      sum += at(position).gasUsed;
    }
    return toQuantity(at(position).priceAtoken);
  });
}
