/**
 * Proofs of reserves as former releases wrote them: one JSON document, in which each account has a proof of
 * its own. They are read, and no longer written.
 */
import { z } from "zod";
import { bytesSchema, parseLightBlock } from "../balance/bundle.js";
import { accountSchema, FORMER_FORMATS, proofFields, type ReservesFile } from "./reserves-file.js";
import { StateNodes } from "./state-nodes.js";

/** Accounts that fitted one file. */
const MAX_ACCOUNTS = 100_000;

const MAX_PROOF_NODES = 65;

const file = z.object({
  format: z.enum(FORMER_FORMATS),
  ...proofFields,
  accounts: z
    .array(accountSchema.extend({ accountProof: z.array(bytesSchema).max(MAX_PROOF_NODES) }))
    .max(MAX_ACCOUNTS),
});

/** The document as typed values. @throws ZodError, and what headers throw */
export function parseFormerReserves(document: unknown): ReservesFile {
  const { accounts, ...parsed } = file.parse(document);
  const nodes = new StateNodes();
  for (const { accountProof } of accounts) for (const node of accountProof) nodes.add(node);
  return {
    ...parsed,
    path: parsed.path.map(parseLightBlock),
    accounts: accounts.map(({ address, role }) => ({ address, role })),
    nodes,
  };
}
