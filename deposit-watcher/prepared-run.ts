/** A run of blocks on its way into the ledger: matched against our addresses, and being verified. */
import type { DataBlock } from "../rpc-client/data-api/data-block.js";
import type { AddressBook } from "./address-book.js";
import { ownParts } from "./block-parts.js";
import type { CheckedNodes } from "./chain-check.js";
import { type MatchBlock, matchBlocks, type MatchResult } from "./deposit-match.js";
import type { TokenBook } from "./tokens/token-book.js";
import {
  readTokenRun,
  type TokenNodes,
  type TokenRun,
  type TokenRunInput,
} from "./tokens/token-run.js";

/** A run that is matched, its verification under way. */
export interface PreparedRun extends Followed {
  readonly run: readonly DataBlock[];
  /** What concerns us of those blocks of the run that could be read; never none. */
  readonly own: readonly MatchBlock[];
  readonly last: MatchBlock;
  readonly matched: Omit<MatchResult, "touches" | "tokenSides">;
  readonly tokens: Promise<TokenRun>;
  readonly verified: Promise<void>;
  /** Why the run's next block could not be read. */
  readonly fault: unknown;
}

/** What a run was matched against: where any of it is another by now, the run is matched again. */
interface Followed {
  /** All deposit addresses have lower indexes. */
  readonly nextAddressIndex: number;
  readonly walletCount: number;
  readonly tokenCount: number;
  /** Number of the last customer that a person named for an address. */
  readonly lastAssignment: number;
}

/** What preparing works with. */
export interface PrepareParts {
  readonly nodes: CheckedNodes;
  readonly tokenNodes: TokenNodes;
  readonly book: AddressBook;
  readonly listed: Pick<TokenBook, "tokens">;
  /** As of `TokenRunInput`. */
  readonly mostListed?: number | undefined;
  readonly explained: TokenRunInput["explained"];
}

/**
 * Matches a run and starts to verify it.
 * @throws what keeps the first block from being read
 */
export async function prepareRun(
  parts: PrepareParts,
  run: readonly DataBlock[],
  options: { readonly signal: AbortSignal },
): Promise<PreparedRun> {
  const { nodes, tokenNodes, book, listed, mostListed, explained } = parts;
  let followed = followedBy(parts);
  let { own, fault } = await ownParts(run, book, options);
  // What is followed since the blocks were asked is not in what they told: they are asked again.
  for (let now = followedBy(parts); !isSame(followed, now); now = followedBy(parts)) {
    followed = now;
    ({ own, fault } = await ownParts(run, book, options));
  }
  const last = own.at(-1);
  if (last === undefined) throw fault;
  const { touches, tokenSides, ...matched } = matchBlocks(own, book);
  const verified = nodes.verifyTouches({ last, touches }, options);
  // Awaited when its turn to be booked comes.
  verified.catch(() => undefined);
  const contracts = listed.tokens.map(({ contract }) => contract);
  const input = { run: run.slice(0, own.length), sides: tokenSides, contracts, mostListed };
  const tokens = readTokenRun(tokenNodes, book, { ...input, explained }, options);
  tokens.catch(() => undefined);
  return { run, own, last, matched, tokens, verified, fault, ...followed };
}

function followedBy({ book, listed }: PrepareParts): Followed {
  const { nextIndex: nextAddressIndex, walletCount, lastAssignment } = book;
  return { nextAddressIndex, walletCount, lastAssignment, tokenCount: listed.tokens.length };
}

function isSame(one: Followed, other: Followed): boolean {
  return (
    one.nextAddressIndex === other.nextAddressIndex &&
    one.walletCount === other.walletCount &&
    one.tokenCount === other.tokenCount &&
    one.lastAssignment === other.lastAssignment
  );
}
