/**
 * Pure: what the logs of registered tokens say has moved. Nothing of it is believed yet: the
 * caller holds the sums against `balanceOf` (token-check.ts).
 */
import { ERC20_TOPICS } from "../../chain/evm/erc20.js";
import { type Address, bytesToAddress, ZERO_ADDRESS } from "../../chain/address.js";
import {
  type CoinClaim,
  echoesOf,
  type IsUnaccompanied,
  unaccompaniedIn,
} from "../../chain/evm/wrapped-coins.js";
import { type Hash32, hexToBytes } from "../../chain/hex.js";
import type { JournaledBlock, JournaledLog } from "../../rpc-client/journal-codec.js";
import type { Token, TokenRegistry } from "./token-registry.js";

/** One movement of a token: both sides of a transfer, one side of a mint or a burn. */
export interface TokenMove {
  readonly type: "ERC20_TRANSFER" | "ERC20_MINT" | "ERC20_BURN";
  readonly token: Token;
  /** Undefined for a mint. */
  readonly from: Address | undefined;
  /** Undefined for a burn. */
  readonly to: Address | undefined;
  readonly units: bigint;
}

/** What the logs of a block say of registered tokens. */
export interface BlockTokenMoves {
  /** Movements of each transaction, in the order of their logs. */
  readonly byTransaction: readonly (readonly TokenMove[])[];
  /** Contracts that logged one of the known events, in the order of their first log. */
  readonly contracts: ReadonlySet<Address>;
  /** Contracts with a log that is not as the standard has it, and what is wrong with it. */
  readonly malformed: ReadonlyMap<Address, string>;
  /** Contracts that logged a Deposit or Withdrawal here without the equal Transfer. */
  readonly unaccompanied: ReadonlySet<Address>;
}

const TRANSFER: string = ERC20_TOPICS.transfer;
const DEPOSIT: string = ERC20_TOPICS.deposit;
const WITHDRAWAL: string = ERC20_TOPICS.withdrawal;

/** Number of topics of each event, its signature included: one per indexed address. */
const TOPIC_COUNTS: ReadonlyMap<string, number> = new Map([
  [TRANSFER, 3],
  [DEPOSIT, 2],
  [WITHDRAWAL, 2],
]);

/** Characters of one 32-byte word as hex with its prefix. */
const WORD_CHARACTERS = 66;

const NO_MOVES: readonly TokenMove[] = Object.freeze([]);

const NO_ECHOES: ReadonlySet<TokenEvent> = new Set();

/** Reads the logs of a block; those of other contracts and other events are passed over. */
export function tokenMovesOf(
  block: JournaledBlock,
  registry: TokenRegistry,
  isUnaccompanied: IsUnaccompanied,
): BlockTokenMoves {
  const contracts = new Set<Address>();
  const malformed = new Map<Address, string>();
  const unaccompanied = new Set<Address>();
  if (registry.tokens.length === 0) {
    const byTransaction = block.transactions.map(() => NO_MOVES);
    return { byTransaction, contracts, malformed, unaccompanied };
  }
  const eventsOf = block.transactions.map(({ logs }) => {
    const events = logs.flatMap((log) => {
      const event = readEvent(log, registry);
      if (event === undefined) return [];
      contracts.add(log.address);
      if (typeof event !== "string") return [event];
      if (!malformed.has(log.address)) malformed.set(log.address, event);
      return [];
    });
    // Nearly all have Transfers alone, and nothing to be told twice.
    if (events.every(({ isTransfer }) => isTransfer)) return { events, echoes: NO_ECHOES };
    const echoes = echoesOf(events);
    for (const contract of unaccompaniedIn(events, echoes)) unaccompanied.add(contract);
    return { events, echoes };
  });
  const byTransaction = eventsOf.map((one) =>
    movesOf(one, (contract) => unaccompanied.has(contract) || isUnaccompanied(contract)),
  );
  return { byTransaction, contracts, malformed, unaccompanied };
}

/** The movements without those of the contracts that are left out. */
export function withoutTokens(
  moves: BlockTokenMoves,
  isLeftOut: (contract: Address) => boolean,
): readonly (readonly TokenMove[])[] {
  if (![...moves.contracts].some(isLeftOut)) return moves.byTransaction;
  return moves.byTransaction.map((list) =>
    list.filter(({ token }) => !isLeftOut(token.contractAddress)),
  );
}

/** Calls back for each side of a movement: -units for `from`, +units for `to`. */
export function forEachSide(
  move: TokenMove,
  visit: (account: Address, deltaUnits: bigint) => void,
): void {
  if (move.from !== undefined) visit(move.from, -move.units);
  if (move.to !== undefined) visit(move.to, move.units);
}

/** A well-formed event. */
interface TokenEvent extends CoinClaim {
  readonly token: Token;
}

/** The events of a transaction, and which of them an equal Transfer may tell as well. */
interface ToldEvents {
  readonly events: readonly TokenEvent[];
  readonly echoes: ReadonlySet<TokenEvent>;
}

/** The event of a log; undefined when it is none of ours, a sentence when it is malformed. */
function readEvent(log: JournaledLog, registry: TokenRegistry): TokenEvent | string | undefined {
  const signature = log.topics[0];
  const topicCount = signature === undefined ? undefined : TOPIC_COUNTS.get(signature);
  if (signature === undefined || topicCount === undefined) return undefined;
  const token = registry.byAddress(log.address);
  if (token === undefined) return undefined;
  const [, first, second] = log.topics;
  if (log.topics.length !== topicCount || first === undefined) {
    return `a log has ${log.topics.length} topics, not ${topicCount}`;
  }
  if (log.data.length !== WORD_CHARACTERS) return "a log's data is not one word";
  const one = addressOfTopic(first);
  const other = second === undefined ? undefined : addressOfTopic(second);
  if (one === undefined || (second !== undefined && other === undefined)) {
    return "a log names an account by more than 20 bytes";
  }
  const [from, to] =
    signature === TRANSFER
      ? [one, other]
      : signature === DEPOSIT
        ? [undefined, one]
        : [one, undefined];
  return {
    token,
    contract: log.address,
    isTransfer: signature === TRANSFER,
    from: real(from),
    to: real(to),
    units: BigInt(log.data),
  };
}

/** The zero address stands for nobody: coins from it are new, coins to it are gone. */
function real(account: Address | undefined): Address | undefined {
  return account === ZERO_ADDRESS ? undefined : account;
}

function addressOfTopic(topic: Hash32): Address | undefined {
  if (!topic.startsWith("0x000000000000000000000000")) return undefined;
  return bytesToAddress(hexToBytes(topic).subarray(12));
}

/** Movements of a transaction: what an equal Transfer tells as well counts once, as that Transfer. */
function movesOf(
  { events, echoes }: ToldEvents,
  isUnaccompanied: IsUnaccompanied,
): readonly TokenMove[] {
  if (events.length === 0) return NO_MOVES;
  return events.flatMap((event) => {
    const { token, from, to, units } = event;
    // Nobody to nobody moves nothing.
    if (from === undefined && to === undefined) return [];
    if (echoes.has(event) && !isUnaccompanied(event.contract)) return [];
    return [{ type: typeOf(event), token, from, to, units }];
  });
}

function typeOf({ from, to }: TokenEvent): TokenMove["type"] {
  if (from === undefined) return "ERC20_MINT";
  return to === undefined ? "ERC20_BURN" : "ERC20_TRANSFER";
}
