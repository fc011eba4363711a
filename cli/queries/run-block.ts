/** `causeway query block`: a block by its height or its hash, as the SDK's --type says. */
import { z } from "zod";
import { loadDescriptors } from "../../runtime/files/descriptor-set.js";
import type { CommandContext } from "../command-context.js";
import { CliError } from "../errors.js";
import { callComet, queryNode, type QueryTarget } from "./node-query.js";
import { print, type QueryFlags, targetOf } from "./run.js";

const SERVICE = "/cosmos.base.tendermint.v1beta1.Service";

const HASH = /^(0x)?[0-9a-f]{64}$/i;
const HEIGHT = /^[0-9]{1,15}$/;

const namedSchema = z.object({
  block: z.object({ header: z.object({ height: z.string() }) }).nullable(),
});

/**
 * Prints a block; without a name the newest one, whatever `--type` says, as the SDK does. Without
 * `--type` a height is what older releases of the SDK take, a hash what newer ones take.
 * @throws USAGE, CLIENT_FAILED
 */
export async function runQueryBlock(
  context: CommandContext,
  given: string | undefined,
  flags: QueryFlags,
): Promise<number> {
  const isHash = isNamedByHash(given, flags["type"]);
  const target = await targetOf(context, flags);
  const types = loadDescriptors();
  if (given === undefined) {
    print(context, flags, await queryNode(types, `${SERVICE}/GetLatestBlock`, {}, target));
    return 0;
  }
  const height = isHash ? await heightOfHash(given, target) : heightOf(given);
  print(context, flags, await queryNode(types, `${SERVICE}/GetBlockByHeight`, { height }, target));
  return 0;
}

function isNamedByHash(given: string | undefined, type: unknown): boolean {
  if (type === undefined) return given !== undefined && HASH.test(given);
  if (type === "height" || type === "hash") return type === "hash";
  throw new CliError("USAGE", "--type is height or hash.");
}

function heightOf(given: string): string {
  if (HEIGHT.test(given)) return given;
  throw new CliError("USAGE", `A block's height is a whole number, not "${given}".`);
}

async function heightOfHash(given: string, target: QueryTarget): Promise<string> {
  if (!HASH.test(given)) {
    throw new CliError("USAGE", `A block's hash is 64 hex digits, not "${given}".`);
  }
  const hash = Buffer.from(given.replace(/^0x/i, ""), "hex").toString("base64");
  const { block } = await callComet("block_by_hash", { hash }, namedSchema, target);
  if (block === null) throw new CliError("CLIENT_FAILED", `The node has no block ${given}.`);
  return block.header.height;
}
