/**
 * Whether tokens did what their logs say: before a block is served, the balances that operations
 * add up to are held against `balanceOf` after that block. The verdict depends on the chain, the
 * registry and `verifyHolders` alone, so that two servers, or one that begins anew, come to the
 * same.
 */
import { type Address, addressToBytes } from "../../../chain/address.js";
import { keccak256Hex } from "../../../chain/hashes.js";
import { type Hash32, type Height, hexToBytes } from "../../../chain/hex.js";
import type { EvmClient } from "../../../rpc-client/evm-client.js";
import type { JournaledBlock } from "../../../rpc-client/journal-codec.js";
import type { RpcOptions } from "../../../rpc-client/json-rpc.js";
import type { TokenRegistry } from "../../rosetta/token-registry.js";
import type { TokenLedger, TokenVerdict } from "./token-ledger.js";
import { type BlockTokenMoves, forEachSide } from "../../rosetta/token-operations.js";

/** Holders checked per block and token when there are more than are always checked. */
const HOLDERS_PER_PART = 64;

/**
 * Accounts checked per block and token of those that its logs and callers name: both sides of 128
 * transfers. A full block has some 6,000 of them. Of more, a sample is checked that nobody can
 * foresee: to ask about everybody would hold up all other tokens and the coins for minutes.
 */
const MAX_NAMED_ACCOUNTS = 256;

/** What no balance reaches. */
const BALANCE_LIMIT = 1n << 256n;

/** What the check works with. */
export interface TokenCheckOptions {
  readonly registry: TokenRegistry;
  readonly ledger: TokenLedger;
  readonly client: Pick<EvmClient, "tokenBalances" | "accountHeights" | "manyAccountHeights">;
  /** Up to so many holders of a token are all checked; of more a part per block, in turns. */
  readonly verifyHolders: number;
}

/** Heights of a range at which the account record of a token's contract was written. */
export type ContractChanges = ReadonlyMap<Height, ReadonlySet<Address>>;

/** Asks the node which contracts of tokens changed where, logged or not. */
export async function readContractChanges(
  { registry, ledger, client }: TokenCheckOptions,
  range: { readonly from: Height; readonly to: Height },
  rpc: RpcOptions,
): Promise<ContractChanges> {
  const changes = new Map<Height, Set<Address>>();
  const followed = registry.tokens
    .map(({ contractAddress }) => contractAddress)
    .filter((contract) => ledger.quarantineOf(contract) === undefined);
  const note = (contract: Address, heights: readonly Height[]) => {
    for (const height of heights) {
      const contracts = changes.get(height) ?? new Set<Address>();
      changes.set(height, contracts.add(contract));
    }
  };
  const pages = await client.manyAccountHeights(followed, range, rpc);
  for (const [position, contract] of followed.entries()) {
    let page = pages[position];
    while (page !== undefined) {
      note(contract, page.heights);
      if (page.next === undefined) break;
      const rest = { from: page.next, to: range.to };
      page = await client.accountHeights(contract, rest, rpc);
    }
  }
  return changes;
}

/** Checks a block; what it finds is not applied yet. */
export async function checkTokens(
  options: TokenCheckOptions,
  block: {
    readonly journal: JournaledBlock;
    readonly moves: BlockTokenMoves;
    readonly changed: ReadonlySet<Address>;
  },
  rpc: RpcOptions,
): Promise<TokenVerdict> {
  const lies = new Map<Address, string>();
  const cursors = new Map<Address, Address>();
  const claims: Claim[] = [];
  for (const { contractAddress: contract } of options.registry.tokens) {
    const isTouched = block.moves.contracts.has(contract) || block.changed.has(contract);
    if (!isTouched || options.ledger.quarantineOf(contract) !== undefined) continue;
    const malformed = block.moves.malformed.get(contract);
    if (malformed !== undefined) {
      lies.set(contract, malformed);
      continue;
    }
    const found = await claimsOf(options, block, contract);
    claims.push(...found.claims);
    if (found.cursor !== undefined) cursors.set(contract, found.cursor);
  }
  // By its hash: what another block's state says would quarantine the token for ever.
  const at = block.journal.hash;
  const queries = claims.map(({ contract, account }) => ({ token: contract, account, at }));
  const answers = queries.length === 0 ? [] : await options.client.tokenBalances(queries, rpc);
  claims.forEach((claim, position) => {
    const lie = lieOf(claim, answers[position]);
    if (lie !== undefined && !lies.has(claim.contract)) lies.set(claim.contract, lie);
  });
  return { lies, cursors };
}

/** A balance that must be so after the block. */
interface Claim {
  readonly contract: Address;
  readonly account: Address;
  readonly units: bigint;
  /** False for one whom no log named yet: a contract that does not answer has nothing of his. */
  readonly isNamed: boolean;
}

function lieOf({ account, units, isNamed }: Claim, answer: bigint | undefined): string | undefined {
  if (answer === units || (answer === undefined && !isNamed)) return undefined;
  const told = answer === undefined ? "does not answer" : `is ${answer}`;
  return `balanceOf(${account}) ${told}, its logs add up to ${units}`;
}

/** Claims about everybody whom the block names, and about other holders. */
async function claimsOf(
  { ledger, verifyHolders }: TokenCheckOptions,
  { journal, moves }: { readonly journal: JournaledBlock; readonly moves: BlockTokenMoves },
  contract: Address,
): Promise<{ claims: Claim[]; cursor: Address | undefined }> {
  const deltas = new Map<Address, bigint>();
  for (const move of moves.byTransaction.flat()) {
    if (move.token.contractAddress !== contract) continue;
    forEachSide(move, (account, delta) => {
      deltas.set(account, (deltas.get(account) ?? 0n) + delta);
    });
  }
  const claimOf = (account: Address): Claim => ({
    contract,
    account,
    units: ledger.balance(contract, account) + (deltas.get(account) ?? 0n),
    isNamed: deltas.has(account) || ledger.isHolder(contract, account),
  });
  for (const account of deltas.keys()) {
    const claim = claimOf(account);
    // Nobody can have that, whatever the contract answers; nothing else need be asked.
    if (claim.units < 0n || claim.units >= BALANCE_LIMIT) {
      return { claims: [claim], cursor: undefined };
    }
  }
  const named = new Set(deltas.keys());
  // Whoever calls or creates a token is the likeliest to gain by what it does not log.
  for (const { from, to, contractAddress } of journal.transactions) {
    if (to === contract || contractAddress === contract) named.add(from);
  }
  const others = await otherHolders(ledger, contract, verifyHolders);
  const accounts = new Set([...sampleOf([...named], journal.hash), ...others.accounts]);
  return { claims: [...accounts].map(claimOf), cursor: others.cursor };
}

/** All accounts where they are few, else some: which ones, the block's hash decides. */
function sampleOf(accounts: readonly Address[], blockHash: Hash32): readonly Address[] {
  if (accounts.length <= MAX_NAMED_ACCOUNTS) return accounts;
  const seed = hexToBytes(blockHash);
  return accounts
    .map((account) => {
      const order = keccak256Hex(Buffer.concat([seed, addressToBytes(account)]));
      return { account, order };
    })
    .toSorted((left, right) => (left.order < right.order ? -1 : 1))
    .slice(0, MAX_NAMED_ACCOUNTS)
    .map(({ account }) => account);
}

/** All holders where they are few; else the next part of them, beginning again at the end. */
async function otherHolders(
  ledger: TokenLedger,
  contract: Address,
  verifyHolders: number,
): Promise<{ accounts: readonly Address[]; cursor: Address | undefined }> {
  const first = await ledger.holdersAfter(contract, undefined, verifyHolders + 1);
  if (first.length <= verifyHolders) return { accounts: first, cursor: undefined };
  const part = await ledger.holdersAfter(contract, ledger.cursor(contract), HOLDERS_PER_PART);
  const accounts = [...part, ...first.slice(0, HOLDERS_PER_PART - part.length)];
  return { accounts, cursor: accounts.at(-1) };
}
