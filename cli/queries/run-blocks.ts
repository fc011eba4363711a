/** `causeway query blocks` and `block-results`: what happened in blocks. */
import { z } from "zod";
import { loadDescriptors } from "../../runtime/files/descriptor-set.js";
import type { CommandContext } from "../command-context.js";
import { CliError } from "../errors.js";
import { callComet, queryNode, type QueryTarget } from "./node-query.js";
import {
  limitOf,
  memberOf,
  print,
  type QueryFlags,
  targetOf,
  textFlag,
  wholeNumber,
} from "./run.js";

const BY_HEIGHT = "/cosmos.base.tendermint.v1beta1.Service/GetBlockByHeight";

/** Blocks on a page: as many as the consensus RPC gives on one, and the SDK's default. */
const MAX_LIMIT = 100;

const foundSchema = z.object({
  blocks: z.array(z.object({ block: z.object({ header: z.object({ height: z.string() }) }) })),
  total_count: z.string(),
});

/**
 * `query blocks`: the SDK's `SearchBlocksResult`, in the form of the REST interface.
 * @throws USAGE, CLIENT_FAILED
 */
export async function runQueryBlocks(context: CommandContext, flags: QueryFlags): Promise<number> {
  const query = textFlag(flags, "query");
  if (query === undefined) throw new CliError("USAGE", "query blocks needs --query.");
  const page = wholeNumber(flags, "page", 1);
  const limit = limitOf(flags, MAX_LIMIT, MAX_LIMIT);
  const target = await targetOf(context, flags);
  const params = { query, page: `${page}`, per_page: `${limit}`, ...orderOf(flags) };
  const found = await callComet("block_search", params, foundSchema, target);
  const blocks: unknown[] = [];
  for (const { block } of found.blocks) blocks.push(await blockAt(block.header.height, target));
  print(context, flags, {
    total_count: found.total_count,
    count: `${blocks.length}`,
    page_number: `${page}`,
    page_total: `${Math.ceil(Number(found.total_count) / limit)}`,
    limit: `${limit}`,
    blocks,
  });
  return 0;
}

/** The CometBFT RPC's own default where none is named. */
function orderOf(flags: QueryFlags): { readonly order_by?: string } {
  const order = textFlag(flags, "order_by")?.toLowerCase();
  if (order === undefined) return {};
  if (order === "asc" || order === "desc") return { order_by: order };
  throw new CliError("USAGE", `--order_by is asc or desc, not "${order}".`);
}

async function blockAt(height: string, target: QueryTarget): Promise<unknown> {
  return memberOf(await queryNode(loadDescriptors(), BY_HEIGHT, { height }, target), "block");
}

/**
 * `query block-results`: the consensus RPC's answer, of the newest block without a height.
 * @throws USAGE, CLIENT_FAILED
 */
export async function runQueryBlockResults(
  context: CommandContext,
  given: string | undefined,
  flags: QueryFlags,
): Promise<number> {
  if (given !== undefined && !/^[0-9]{1,15}$/.test(given)) {
    throw new CliError("USAGE", `A block's height is a whole number, not "${given}".`);
  }
  const params = given === undefined ? {} : { height: given };
  const results = z.looseObject({ height: z.string() });
  print(
    context,
    flags,
    await callComet("block_results", params, results, await targetOf(context, flags)),
  );
  return 0;
}
