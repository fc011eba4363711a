/**
 * Pure: a Merkle tree whose nodes carry sums, one for each asset. A node is
 * SHA-256(level, left hash, left sum, right hash, right sum): both sums are bound, so that nobody can
 * move a liability from one side to the other, and every sum is at least zero and below 2^256. Leaves
 * are salted: a customer's place says nothing about the neighbours.
 */
import { createHash, createHmac } from "node:crypto";
import { MAX_WORD } from "../../../chain/hex.js";

/** A node: 64 hex digits and the sum of all leaves below it, in the asset's smallest unit. */
export interface SumNode {
  readonly hash: string;
  readonly sumUnits: bigint;
}

/** A liability before it is hashed. */
export interface LiabilityLeaf {
  readonly asset: string;
  readonly customerId: string;
  readonly units: bigint;
  /** 64 hex digits, random for each leaf and told to its customer alone. */
  readonly salt: string;
}

/** A step on the way to the root. */
export interface ProofStep extends SumNode {
  /** Where the sibling stands. */
  readonly side: "left" | "right";
}

/** The root of one asset's tree. */
export interface SumRoot extends SumNode {
  readonly asset: string;
  /** Steps from a leaf to the root. */
  readonly levels: number;
}

/** A tree with what its customers' proofs need. */
export interface SumTree {
  readonly root: SumRoot;
  /** The way of a leaf, by its place in the list that the tree was made of. */
  readonly proofOf: (place: number) => readonly ProofStep[];
}

/** Sums are held in 32 bytes. */
export const MAX_UNITS = MAX_WORD;

/** 2^24 leaves: more customers than any exchange has, and a bound for what a file may ask. */
export const MAX_LEVELS = 24;

/** Hash and sum of a leaf. @throws RangeError for a sum that no leaf may have */
export function leafNode({ asset, customerId, units, salt }: LiabilityLeaf): SumNode {
  checkSum(units);
  const text = ["causeway-liability/1", asset, customerId, units.toString()].join("\n");
  const hash = createHmac("sha256", Buffer.from(salt, "hex")).update(text).digest("hex");
  return { hash, sumUnits: units };
}

/**
 * The node above two.
 * @param level 0 for the one above leaves
 * @throws RangeError for a sum that no node may have
 */
export function parentNode(level: number, left: SumNode, right: SumNode): SumNode {
  for (const { sumUnits } of [left, right]) checkSum(sumUnits);
  const sumUnits = left.sumUnits + right.sumUnits;
  checkSum(sumUnits);
  const bytes = Buffer.concat([Buffer.from([level]), nodeBytes(left), nodeBytes(right)]);
  return { hash: createHash("sha256").update(bytes).digest("hex"), sumUnits };
}

/**
 * The tree of an asset. Leaves stand in the order of their salted hashes; empty places hold leaves of
 * nothing whose salts nobody has.
 * @param randomHex gives 64 random hex digits
 */
export function buildTree(
  asset: string,
  leaves: readonly LiabilityLeaf[],
  randomHex: () => string,
): SumTree {
  const levels = Math.ceil(Math.log2(Math.max(1, leaves.length)));
  if (levels > MAX_LEVELS) throw new RangeError(`more than 2^${MAX_LEVELS} liabilities`);
  const nodes = leaves.map((leaf, place) => ({ node: leafNode(leaf), place }));
  for (let count = nodes.length; count < 2 ** levels; count += 1) {
    nodes.push({ node: { hash: randomHex(), sumUnits: 0n }, place: -1 });
  }
  nodes.sort((one, other) => (one.node.hash < other.node.hash ? -1 : 1));
  const positions = new Map(nodes.map(({ place }, position) => [place, position]));
  const rows: SumNode[][] = [nodes.map(({ node }) => node)];
  for (let level = 0; level < levels; level += 1) rows.push(rowAbove(level, rows[level] ?? []));
  const [root = leafNode({ asset, customerId: "", units: 0n, salt: randomHex() })] =
    rows[levels] ?? [];
  return {
    root: { ...root, asset, levels },
    proofOf: (place) => stepsFrom(rows, positions.get(place) ?? -1),
  };
}

/**
 * The root that a leaf and its way lead to.
 * @throws RangeError for sums that no node may have, and for a way that is too long
 */
export function rootOf(leaf: SumNode, steps: readonly ProofStep[]): SumNode {
  if (steps.length > MAX_LEVELS) throw new RangeError(`more than ${MAX_LEVELS} steps`);
  return steps.reduce(
    (node, step, level) =>
      step.side === "left" ? parentNode(level, step, node) : parentNode(level, node, step),
    leaf,
  );
}

/** One hash for the roots of all assets: what wallets sign. 64 hex digits. */
export function liabilitiesRoot(roots: readonly SumRoot[]): string {
  const lines = roots
    .toSorted((one, other) => (one.asset < other.asset ? -1 : 1))
    .map(({ asset, levels, hash, sumUnits }) => [asset, levels, hash, sumUnits].join(" "));
  const text = ["causeway-liabilities/1", ...lines].join("\n");
  return createHash("sha256").update(text).digest("hex");
}

function rowAbove(level: number, row: readonly SumNode[]): SumNode[] {
  const above: SumNode[] = [];
  for (let place = 0; place < row.length; place += 2) {
    const [left, right] = [row[place], row[place + 1]];
    if (left !== undefined && right !== undefined) above.push(parentNode(level, left, right));
  }
  return above;
}

function stepsFrom(rows: readonly (readonly SumNode[])[], position: number): ProofStep[] {
  return rows.slice(0, -1).flatMap((row, level) => {
    const own = Math.floor(position / 2 ** level);
    const sibling = row[own ^ 1];
    if (sibling === undefined) throw new RangeError("no leaf of this tree");
    return [{ ...sibling, side: own % 2 === 0 ? ("right" as const) : ("left" as const) }];
  });
}

function nodeBytes({ hash, sumUnits }: SumNode): Buffer {
  return Buffer.from(hash + sumUnits.toString(16).padStart(64, "0"), "hex");
}

function checkSum(units: bigint): void {
  if (units < 0n || units > MAX_UNITS) throw new RangeError(`a sum of ${units} units`);
}
