/**
 * The file that one customer gets: what is owed to them, and the way from there to the root that the
 * wallets signed. It tells nothing of other customers but the sums beside the way.
 */
import { z } from "zod";
import type { Height } from "../../../chain/hex.js";
import { schemaFaultText } from "../../../runtime/config/schema-faults.js";
import { notProven } from "../balance/verify.js";
import { AuditError } from "../errors.js";
import { nameSchema, rootJson, rootsSchema } from "./reserves-file.js";
import {
  leafNode,
  type LiabilityLeaf,
  liabilitiesRoot,
  MAX_LEVELS,
  type ProofStep,
  rootOf,
  type SumRoot,
} from "./sum-tree.js";

/** First field of the file. */
const FORMAT = "causeway-liability/1";

/** Longest file that is read: 24 steps and a thousand and one roots stay below. */
export const MAX_LIABILITY_BYTES = 1_048_576;

/** What a file says. */
export interface LiabilityFile extends LiabilityLeaf {
  readonly ledgerId: string;
  readonly height: Height;
  /** Of the block that the reserves are proven for. */
  readonly blockHash: string;
  readonly steps: readonly ProofStep[];
  /** Of all assets: their common root is what wallets sign. */
  readonly roots: readonly SumRoot[];
}

const hash = z.string().regex(/^[0-9a-f]{64}$/);
const units = z
  .string()
  .regex(/^(0|[1-9][0-9]{0,77})$/)
  .transform(BigInt);

const file = z.object({
  format: z.literal(FORMAT),
  ledgerId: z.string().regex(/^[\x20-\x7e]{0,100}$/),
  height: z.int().min(0),
  blockHash: z.string().regex(/^0x[0-9a-f]{64}$/),
  asset: nameSchema,
  customerId: nameSchema,
  units,
  salt: hash,
  steps: z
    .array(z.object({ side: z.enum(["left", "right"]), hash, sumUnits: units }))
    .max(MAX_LEVELS),
  roots: rootsSchema,
});

type Named = Pick<LiabilityLeaf, "asset" | "customerId">;

/** What the file is called: another name for each customer and asset, of letters that every system takes. */
export function liabilityFileName({ asset, customerId }: Named): string {
  const plain = (text: string) => text.replaceAll(":", "%3A");
  return `${plain(asset).replaceAll("-", "%2D")}-${plain(customerId)}.json`;
}

/**
 * Names the files of one proof, as `liabilityFileName` does. Where two names differ in nothing but
 * capitals, those of both are escaped: disks there are that take them for one.
 */
export function liabilityFileNames(leaves: readonly Named[]): (leaf: Named) => string {
  const seen = new Set<string>();
  const taken = new Set<string>();
  for (const leaf of leaves) {
    const folded = liabilityFileName(leaf).toLowerCase();
    if (seen.has(folded)) taken.add(folded);
    seen.add(folded);
  }
  return (leaf) => {
    const name = liabilityFileName(leaf);
    return taken.has(name.toLowerCase()) ? escapeCapitals(name) : name;
  };
}

/** Those of escapes stay, which are the same in all names that differ in nothing but capitals. */
function escapeCapitals(name: string): string {
  const escaped = (letter: string) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`;
  return name.replaceAll(/%[0-9A-F]{2}|[A-Z]/g, (part) =>
    part.startsWith("%") ? part : escaped(part),
  );
}

/** The text of the file. */
export function encodeLiability(liability: LiabilityFile): string {
  const { units: owed, steps, roots, ...rest } = liability;
  const document = {
    format: FORMAT,
    ...rest,
    units: owed.toString(),
    steps: steps.map(({ sumUnits, ...step }) => ({ ...step, sumUnits: sumUnits.toString() })),
    roots: roots.map(rootJson),
  };
  return `${JSON.stringify(document, null, 1)}\n`;
}

/** The file's text as typed values. @throws BUNDLE_UNREADABLE naming the field */
export function parseLiability(text: string): LiabilityFile {
  try {
    return file.parse(JSON.parse(text));
  } catch (cause) {
    const message = `The file is no proof of a liability (${FORMAT}): ${schemaFaultText(cause)}.`;
    throw new AuditError("BUNDLE_UNREADABLE", message, { cause });
  }
}

/**
 * Verifies that what is owed is in the sum of its asset.
 * @returns the root of that asset, and the one that wallets sign
 * @throws NOT_PROVEN
 */
export function verifyLiability(liability: LiabilityFile): {
  readonly root: SumRoot;
  readonly liabilitiesRoot: string;
} {
  const { asset, steps, roots } = liability;
  const root = roots.find((one) => one.asset === asset);
  if (root === undefined) throw notProven(`there is no root of ${asset}`);
  if (steps.length !== root.levels) throw notProven("the way does not reach the root");
  let found;
  try {
    found = rootOf(leafNode(liability), steps);
  } catch (cause) {
    throw notProven("a sum on the way is out of range", cause);
  }
  if (found.hash !== root.hash || found.sumUnits !== root.sumUnits) {
    throw notProven("the way leads to another root");
  }
  return { root, liabilitiesRoot: liabilitiesRoot(roots) };
}
