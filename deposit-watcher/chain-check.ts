/**
 * What the chain itself says against what we were told: the node's identity before the first
 * credit, the blocks we booked, and the balances behind every operation that concerns us.
 */
import { present } from "../chain/errors.js";
import type { Hash32, Height } from "../chain/hex.js";
import type { ChainIdentity } from "../ledger/database.js";
import type { WatchCursor } from "../ledger/watch/watch-cursor.js";
import type { EvmClient } from "../rpc-client/evm-client.js";
import type { Touch } from "./deposit-match.js";
import { DepositError, IncidentFound } from "./errors.js";

/** The node's calls that the checks need. */
export type CheckedNode = Pick<
  EvmClient,
  "chainId" | "genesisHash" | "isSyncing" | "blockNumber" | "getBlockHeader" | "getBalances"
>;

interface Waiting {
  readonly signal: AbortSignal;
}

/** The node, and a second one where there is one: what is booked, both say. */
export class CheckedNodes {
  readonly #nodes: readonly (readonly [name: string, node: CheckedNode])[];

  constructor(
    private readonly first: CheckedNode,
    second?: CheckedNode,
  ) {
    this.#nodes = [
      ["the node", first],
      ...(second === undefined ? [] : [["the second node", second] as const]),
    ];
  }

  /**
   * Passes when all serve the chain of this ledger and none is catching up.
   * @throws NOT_READY with the reason; the nodes' faults
   */
  async assertTrustworthy(identity: ChainIdentity, options: Waiting): Promise<void> {
    for (const [name, node] of this.#nodes) {
      await assertTrustworthy(node, name, { identity, ...options });
    }
  }

  /**
   * Heights up to this one can be booked: each node has their blocks.
   * @param headHeight the node's head
   */
  async commonHead(headHeight: Height, options: Waiting): Promise<CommonHead> {
    const others = this.#nodes.filter(([, node]) => node !== this.first);
    const heads = await Promise.all(
      others.map(async ([name, node]) => ({ name, height: await node.blockNumber(options) })),
    );
    const first = { name: "the node", height: headHeight };
    return heads.reduce((lowest, head) => (head.height < lowest.height ? head : lowest), first);
  }

  /**
   * Holds blocks of the Data API against every node: the last one's hash, and for each touched
   * address that the sum of its operations is the difference of its balances before and after.
   * @throws IncidentFound; the nodes' faults
   */
  async verifyTouches(run: CheckedRun, options: Waiting): Promise<void> {
    await Promise.all(
      this.#nodes.map(([name, node]) => verifyTouches(node, run, { name, ...options })),
    );
  }
}

/** The lowest head of all nodes, and whose it is. */
export interface CommonHead {
  readonly name: string;
  readonly height: Height;
}

/** Who lacks the block behind a booked one, which the node itself has. */
export function whoLacksNext(
  { name, height }: CommonHead,
  booked: Pick<WatchCursor, "height">,
  headHeight: Height,
): string {
  if (booked.height < height) return `the Data API has no block ${booked.height + 1} yet`;
  return `${name} shows height ${height}, ${headHeight - height} below the node`;
}

/** Blocks in a row, by the hash of the last one, and what they did to watched addresses. */
export interface CheckedRun {
  readonly last: { readonly height: Height; readonly hash: Hash32 };
  readonly touches: readonly Touch[];
}

async function assertTrustworthy(
  node: CheckedNode,
  name: string,
  { identity, ...options }: Waiting & { readonly identity: ChainIdentity },
): Promise<void> {
  const [chainId, genesisHash, isSyncing] = await Promise.all([
    node.chainId(options),
    node.genesisHash(options),
    node.isSyncing(options),
  ]);
  if (chainId !== identity.chainId || genesisHash !== identity.genesisHash) {
    throw new DepositError("NOT_READY", `${name} serves another chain than the ledger's`, {
      details: { chainId: chainId.toString(), genesisHash },
      retriable: true,
    });
  }
  if (isSyncing) {
    throw new DepositError("NOT_READY", `${name} is catching up`, { retriable: true });
  }
}

/** Looks in a row that may show a head below the cursor: one node behind a balancer may be late. */
export const STALE_HEADS_ALLOWED = 30;

/**
 * Reads the head and makes sure that what is booked still stands.
 * @param options.staleHeads looks before this one that showed a head below the cursor
 * @returns height of the head, >= the cursor's
 * @throws STALE_HEAD while a head below the cursor may be one late node's; IncidentFound when it was
 *   seen too often in a row, or when the cursor's block changed
 */
export async function readHead(
  node: CheckedNode,
  cursor: WatchCursor,
  options: Waiting & { readonly staleHeads: number; readonly staleHeadsAllowed: number },
): Promise<Height> {
  const { signal, staleHeads, staleHeadsAllowed } = options;
  const headHeight = await node.blockNumber({ signal });
  if (headHeight < cursor.height) {
    const message = `the node's head ${headHeight} is below the booked block ${cursor.height}`;
    const details = { headHeight, cursorHeight: cursor.height };
    if (staleHeads < staleHeadsAllowed) {
      throw new DepositError("STALE_HEAD", message, { details, retriable: true });
    }
    throw new IncidentFound({ kind: "HEIGHT_WENT_BACK", height: headHeight, message, details });
  }
  const { blockHash } = cursor;
  if (blockHash !== undefined) {
    await assertHash(node, { height: cursor.height, hash: blockHash }, "HASH_CHANGED", {
      name: "the node",
      signal,
    });
  }
  return headHeight;
}

async function verifyTouches(
  node: CheckedNode,
  run: CheckedRun,
  { name, ...options }: Waiting & { readonly name: string },
): Promise<void> {
  const queries = run.touches.flatMap((touch) => {
    const after = { address: touch.address, at: touch.height };
    // The older state first: the node then has the younger one at hand.
    return touch.height === 0 ? [after] : [{ ...after, at: touch.height - 1 }, after];
  });
  const [answers] = await Promise.all([
    node.getBalances(queries, options),
    assertHash(node, run.last, "NODES_DISAGREE", { name, ...options }),
  ]);
  const balances = answers.values();
  const nextBalance = () => present(balances.next().value, "balance of a touched address");
  for (const touch of run.touches) {
    const beforeAtoken = touch.height === 0 ? 0n : nextBalance();
    const afterAtoken = nextBalance();
    if (afterAtoken - beforeAtoken === touch.deltaAtoken) continue;
    throw new IncidentFound({
      kind: "BALANCE_MISMATCH",
      height: touch.height,
      message:
        `the operations of ${touch.address} in block ${touch.height} do not explain the ` +
        `change of its balance on ${name}`,
      details: {
        address: touch.address,
        operationsAtoken: touch.deltaAtoken,
        balanceBeforeAtoken: beforeAtoken,
        balanceAfterAtoken: afterAtoken,
      },
    });
  }
}

async function assertHash(
  node: CheckedNode,
  expected: { readonly height: Height; readonly hash: Hash32 },
  kind: "HASH_CHANGED" | "NODES_DISAGREE",
  { name, ...options }: Waiting & { readonly name: string },
): Promise<void> {
  const header = await node.getBlockHeader(expected.height, options);
  if (header === undefined) {
    throw new DepositError("NOT_READY", `${name} has no block ${expected.height} yet`, {
      details: { height: expected.height },
      retriable: true,
    });
  }
  if (header.hash === expected.hash) return;
  throw new IncidentFound({
    kind,
    height: expected.height,
    message:
      kind === "HASH_CHANGED"
        ? `the node's block ${expected.height} is not the one that is booked`
        : `${name} and the Data API disagree about block ${expected.height}`,
    details: { nodeHash: header.hash, otherHash: expected.hash },
  });
}
