/** Where proofs come from and lie: a node that is believed in nothing, and files of others. */
import { createReadStream } from "node:fs";
import { createJsonRpcClient } from "../../../rpc-client/json-rpc.js";
import { systemClock } from "../../../runtime/process/clock.js";
import type { CommandContext } from "../../command-context.js";
import { fileCause } from "../../errors.js";
import { loadKitConfig } from "../../home/kit-config.js";
import { readNodeStatus } from "../../probe/node-status.js";
import { type AuditNode, createAuditNode } from "../audit-node.js";
import { AuditError } from "../errors.js";
import { readGenesisOption, readHeightOption, readUrlOption } from "../options.js";
import type { AuditBalanceOptions } from "../words.js";
import { type CollectSource, headerSource } from "./collect.js";

/** What the command line says about the node, the chain and the block. */
export type ProofSourceOptions = Pick<
  AuditBalanceOptions,
  "height" | "node" | "consensus" | "genesis"
>;

/** A source whose node tells all that audits ask. */
export type ProofSource = CollectSource & { readonly node: AuditNode };

/** Opens the node of a home, or the one that is named, runs the work and closes it. */
export async function withProofSource<T>(
  context: CommandContext,
  options: ProofSourceOptions,
  work: (source: ProofSource) => Promise<T>,
): Promise<T> {
  const { signal } = context;
  const height =
    options.height === "head" ? undefined : readHeightOption("--height", options.height);
  const { jsonRpcUrl, consensusUrl } = urlsOf(context, options);
  const genesis = readGenesisOption(options.genesis, context.home);
  const rpc = createJsonRpcClient({ url: jsonRpcUrl });
  try {
    const oldestHeight = async () => {
      const status = await readNodeStatus(consensusUrl, { clock: systemClock, signal });
      return Math.max(1, status.oldestHeight);
    };
    return await work({
      node: createAuditNode(rpc, signal),
      headers: headerSource({ url: consensusUrl, oldestHeight, signal }),
      genesis,
      height,
      signal,
    });
  } finally {
    rpc.close();
  }
}

/**
 * The text of a file of at most so many bytes, counted while it is read: files of others may be links to
 * what has no end, or grow.
 * @throws BUNDLE_UNREADABLE
 */
export async function readProofFile(file: string, maxBytes: number): Promise<string> {
  try {
    const chunks: Buffer[] = [];
    let sizeBytes = 0;
    for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>) {
      sizeBytes += chunk.length;
      if (sizeBytes > maxBytes) throw new RangeError("it is too long for a proof of its kind");
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString("utf8");
  } catch (cause) {
    const message = `Cannot read ${file}: ${fileCause(cause)}.`;
    throw new AuditError("BUNDLE_UNREADABLE", message, { cause });
  }
}

function urlsOf(
  context: CommandContext,
  { node, consensus }: ProofSourceOptions,
): { readonly jsonRpcUrl: string; readonly consensusUrl: string } {
  const home = node === undefined || consensus === undefined ? loadKitConfig(context) : undefined;
  const jsonRpcUrl = node ?? home?.endpoints.jsonRpcUrl;
  const consensusUrl = consensus ?? home?.endpoints.cometRpcUrl;
  if (jsonRpcUrl === undefined || consensusUrl === undefined) {
    const message = "This home uses somebody else's node: name its consensus RPC with --consensus.";
    throw new AuditError("BAD_OPTION", message);
  }
  return {
    jsonRpcUrl: readUrlOption("--node", jsonRpcUrl),
    consensusUrl: readUrlOption("--consensus", consensusUrl),
  };
}
