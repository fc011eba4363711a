/** A block of the server on trial against the same block of the node. */
import type { CheckedBlock } from "./block-check.js";
import type { FaultList } from "./faults.js";
import type { WitnessBlock } from "./node-witness.js";

/** Hash, parent and transactions must be the node's, in its order. */
export function checkAgainstWitness(
  block: CheckedBlock,
  witness: WitnessBlock,
  faults: FaultList,
): void {
  const { index, hash } = block.id;
  const fault = (message: string) =>
    faults.add({ code: "BLOCK_OF_NODE", blockIndex: index, message });
  if (hash !== witness.hash) fault(`its hash is ${hash}, at the node ${witness.hash}`);
  if (index > 0 && block.parent.hash !== witness.parentHash) {
    fault(`its parent is ${block.parent.hash}, at the node ${witness.parentHash}`);
  }
  const theirs = witness.transactionHashes;
  const ours = block.transactionHashes;
  const differs = theirs.findIndex((transaction, position) => ours[position] !== transaction);
  if (differs >= 0 || ours.length !== theirs.length) {
    const at = differs >= 0 ? differs : theirs.length;
    fault(`transaction ${at} is ${ours[at] ?? "missing"}, at the node ${theirs[at] ?? "none"}`);
  }
}
