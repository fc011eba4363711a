/** Whether a ledger that is read without a node is of the chain that the home is on. */
import type { Hash32 } from "../../chain/hex.js";
import { LedgerError } from "../../ledger/errors.js";
import { createGenesisBlock } from "../../node/blocks/genesis-block.js";
import { type Genesis, GenesisError, loadGenesis } from "../../node/settings/genesis.js";
import { homePaths } from "../home/home.js";
import { readChainOrigin } from "../home/network/chain-origin.js";

/**
 * Refuses the books of another chain: what is made of them is given to others as this home's.
 * @param genesisHash of the chain that the ledger was made for
 * @throws FOREIGN_LEDGER; HOME_UNUSABLE, HOME_INCOMPLETE
 */
export function assertOwnLedger(home: string, genesisHash: Hash32): void {
  const own = genesisHashOf(home);
  if (own === undefined || own === genesisHash) return;
  throw new LedgerError(
    "FOREIGN_LEDGER",
    `the ledger belongs to another chain (its genesis is ${genesisHash}, that of ${home} is ${own}): ` +
      "name the database of this home with DATABASE_URL, or the ledger's own home with --home",
    { details: { stored: genesisHash, home: own } },
  );
}

/** Undefined where the home does not say which chain it is on, or names one that no node of today follows. */
function genesisHashOf(home: string): Hash32 | undefined {
  const paths = homePaths(home);
  const origin = readChainOrigin(paths);
  if (origin?.kind === "remote") return origin.genesisHash;
  const genesis = readGenesis(paths.genesis);
  return genesis && createGenesisBlock(genesis).committed.block.hash;
}

/** A home whose ledger is read on may have a genesis of a former release, or none any more. */
function readGenesis(file: string): Genesis | undefined {
  try {
    return loadGenesis(file);
  } catch (error) {
    if (error instanceof GenesisError) return undefined;
    throw error;
  }
}
