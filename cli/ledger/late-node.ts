/** Commands that decide by what a node shows ask whether it shows the newest blocks. */
import { readSeenHeight } from "../../ledger/wallets/seen-height.js";
import { sleep } from "../../runtime/process/task.js";
import { CliError } from "../errors.js";
import type { LedgerCommand, OpenedLedger } from "./ledger-tools.js";

/** The worker's node may be ahead of the watcher's, which is asked here, by so few; it is waited for them. */
const MOMENTARY_BLOCKS = 2;

/** Looks at a node that is so little behind, and the time between two. */
const LOOKS = 10;
const LOOK_AGAIN_MS = 500;

/**
 * What a node lacks that is catching up would be taken for never paid, for addresses that nobody has, and for
 * blocks that the chain has lost.
 * @param undone what has not happened, in a sentence
 * @throws NODE_UNFIT
 */
export async function refuseSyncing(
  { signal }: Pick<LedgerCommand, "signal">,
  { node }: Pick<OpenedLedger, "node">,
  undone: string,
): Promise<void> {
  if (!(await node.isSyncing({ signal }))) return;
  throw new CliError(
    "NODE_UNFIT",
    "The node is catching up, and shows nothing yet of the newest blocks: wait until it has, then type " +
      `this again. ${undone}`,
  );
}

/**
 * The same, and a node that shows an older head than this ledger has seen, as one behind a balancer may.
 * @param undone what has not happened, in a sentence
 * @throws NODE_UNFIT
 */
export async function refuseLate(
  command: Pick<LedgerCommand, "signal">,
  opened: Pick<OpenedLedger, "node" | "database">,
  undone: string,
): Promise<void> {
  await refuseSyncing(command, opened, undone);
  // In this order: the chain goes on meanwhile.
  const seen = await readSeenHeight(opened.database);
  const { signal } = command;
  let head = await opened.node.blockNumber({ signal });
  for (let look = 1; head < seen && seen - head <= MOMENTARY_BLOCKS && look < LOOKS; look += 1) {
    await sleep(LOOK_AGAIN_MS, { signal });
    head = await opened.node.blockNumber({ signal });
  }
  if (head >= seen) return;
  throw new CliError(
    "NODE_UNFIT",
    `The node shows height ${head}, and this ledger has seen ${seen}: what was paid since is not to be ` +
      "seen there. Wait until the node has come so far, then type this again; where the chain has lost " +
      `these blocks: causeway recover. ${undone}`,
  );
}
