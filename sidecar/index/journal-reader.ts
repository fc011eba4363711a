/** Journals of consecutive blocks in order, a few of them read ahead. */
import type { Height } from "../../chain/hex.js";
import type { EvmClient, NodeBlockHeader } from "../../rpc-client/evm-client.js";
import type { JournaledBlock } from "../../rpc-client/journal-codec.js";
import type { RpcOptions } from "../../rpc-client/json-rpc.js";
import { SidecarError } from "../rosetta/errors.js";

/** Journals in flight: enough to keep the node busy. */
const MAX_IN_FLIGHT = 8;

/** At first, and of full blocks: those have 40 MB each, and all must come before the time-out. */
const MIN_IN_FLIGHT = 2;

/** Transactions in flight when the next blocks are like the last one; a full block has 20,000. */
const MAX_TRANSACTIONS_IN_FLIGHT = 30_000;

/** What is read: all blocks above `above` up to the target. */
export interface JournalRange {
  readonly above: Height;
  readonly target: NodeBlockHeader;
}

/**
 * Reads the journals; whether they are linked is for the caller to check.
 * @throws NODE_FAULT when the node has no block or no journal where it must have one
 */
export async function* readJournals(
  client: Pick<EvmClient, "getBlockHeaders" | "blockJournal">,
  range: JournalRange,
  rpc: RpcOptions,
): AsyncGenerator<JournaledBlock, void> {
  const headers = await readHeaders(client, range, rpc);
  const inFlight: Promise<JournaledBlock>[] = [];
  let started = 0;
  let most = MIN_IN_FLIGHT;
  for (let done = 0; done < headers.length; done++) {
    while (started < headers.length && inFlight.length < most) {
      const header = headers[started++];
      if (header === undefined) continue;
      const journal = readJournal(client, header, rpc);
      // The first fault ends the reading; those behind it must not go unhandled.
      journal.catch(() => undefined);
      inFlight.push(journal);
    }
    const next = await inFlight.shift();
    if (next === undefined) continue;
    most = readsFor(next);
    yield next;
  }
}

/** How many journals like this one may be on their way. */
function readsFor({ transactions }: JournaledBlock): number {
  const fitting = Math.floor(MAX_TRANSACTIONS_IN_FLIGHT / (transactions.length + 1));
  return Math.max(MIN_IN_FLIGHT, Math.min(MAX_IN_FLIGHT, fitting));
}

async function readHeaders(
  client: Pick<EvmClient, "getBlockHeaders">,
  { above, target }: JournalRange,
  rpc: RpcOptions,
): Promise<NodeBlockHeader[]> {
  const heights: Height[] = [];
  for (let height = above + 1; height < target.height; height++) heights.push(height);
  const headers = heights.length === 0 ? [] : await client.getBlockHeaders(heights, rpc);
  return [
    ...heights.map((height, position) => {
      const header = headers[position];
      if (header?.height === height) return header;
      throw new SidecarError("NODE_FAULT", { reason: "no block below its newest", index: height });
    }),
    target,
  ];
}

async function readJournal(
  client: Pick<EvmClient, "blockJournal">,
  { height, hash }: NodeBlockHeader,
  rpc: RpcOptions,
): Promise<JournaledBlock> {
  const journal = await client.blockJournal(hash, rpc);
  if (journal?.height === height) return journal;
  throw new SidecarError("NODE_FAULT", { reason: "no journal of a block it named", index: height });
}
