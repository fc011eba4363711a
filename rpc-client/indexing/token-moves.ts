/**
 * What logs of a transaction say that tokens moved. Pure. A log of a token is a claim: whoever counts
 * on it asks the contract.
 */
import { type Address, ZERO_ADDRESS } from "../../chain/address.js";
import { decodeErc1155, ERC1155_TOPICS, ERC20_TOPICS } from "../../chain/evm/erc20.js";
import { type CoinClaim, echoesOf, unaccompaniedIn } from "../../chain/evm/wrapped-coins.js";
import type { JournaledLog } from "../journal-codec.js";
import { transferOf } from "../tokens/transfer-logs.js";

/** One movement of a token. */
export interface TokenMove {
  readonly kind: "erc20" | "erc721" | "erc1155";
  readonly asset: Address;
  /** Undefined where the token was made. */
  readonly from: Address | undefined;
  /** Undefined where it ceased to be. */
  readonly to: Address | undefined;
  /** One, of an ERC-721. */
  readonly amountUnits: bigint;
  /** Undefined for an ERC-20. */
  readonly tokenId: bigint | undefined;
  readonly logIndex: number;
  /**
   * Of a Deposit or Withdrawal: whether an equal Transfer is beside it, with which it may be one movement.
   * It is where the contract logs that Transfer with each of them (`chain/evm/wrapped-coins.ts`).
   */
  readonly wrapping: "alone" | "echoed" | undefined;
}

/**
 * All that the logs of one transaction tell of, in their order.
 * @param first index of the first log in its block
 */
export function tokensMoved(logs: readonly JournaledLog[], first: number): readonly TokenMove[] {
  const claims = claimsOf(logs, first);
  const coins = coinClaimsOf(claims);
  if (coins === undefined) return claims;
  const echoes = echoesOf(coins);
  const unaccompanied = new Set(unaccompaniedIn(coins, echoes));
  const echoed = new Set([...echoes].map(({ move }) => move));
  return claims.map((move) =>
    echoed.has(move) && !unaccompanied.has(move.asset) ? { ...move, wrapping: "echoed" } : move,
  );
}

/** Contracts with a Deposit or Withdrawal among the logs of one transaction that has no equal Transfer. */
export function unaccompaniedBy(logs: readonly JournaledLog[]): readonly Address[] {
  if (!logs.some(({ topics }) => isWrappingSignature(topics[0]))) return [];
  const coins = coinClaimsOf(claimsOf(logs, 0)) ?? [];
  return unaccompaniedIn(coins, echoesOf(coins));
}

function claimsOf(logs: readonly JournaledLog[], first: number): TokenMove[] {
  const claims: TokenMove[] = [];
  for (const [position, log] of logs.entries()) {
    try {
      addClaims(claims, log, first + position);
    } catch {
      // What cannot be read says nothing. Anybody can log it, and who follows the chain has to get past it.
    }
  }
  return claims;
}

/** A movement as the rules of wrapped coins have it. */
interface CoinMove extends CoinClaim {
  readonly move: TokenMove;
}

/** Undefined where no Deposit or Withdrawal is among them, as in nearly all transactions. */
function coinClaimsOf(claims: readonly TokenMove[]): readonly CoinMove[] | undefined {
  if (!claims.some(({ wrapping }) => wrapping !== undefined)) return undefined;
  return claims.flatMap((move) => {
    if (move.kind !== "erc20") return [];
    const { asset: contract, from, to, amountUnits: units, wrapping } = move;
    return [{ contract, from, to, units, isTransfer: wrapping === undefined, move }];
  });
}

/** Throws before it adds anything. */
function addClaims(claims: TokenMove[], log: JournaledLog, logIndex: number): void {
  const { topics, data, address: asset } = log;
  const signature: string | undefined = topics[0];
  if (isWrappingSignature(signature)) {
    const one = wrapped(log, signature, logIndex);
    if (one !== undefined) claims.push(one);
    return;
  }
  if (!isTransferSignature(signature)) return;
  const wrapping = undefined;
  const { standard: kind, from, to, value, isStandard } = transferOf(topics, data);
  if (kind === "erc1155") {
    const word = topics[0];
    if (word === undefined || topics.length < 4) return;
    for (const { id, units } of decodeErc1155(word, data) ?? []) {
      const amountUnits = units;
      claims.push({ kind, asset, from, to, amountUnits, tokenId: id, logIndex, wrapping });
    }
    return;
  }
  if (value === undefined || (!isStandard && kind === "erc721")) return;
  const isOne = kind === "erc721";
  const amountUnits = isOne ? 1n : value;
  const tokenId = isOne ? value : undefined;
  claims.push({ kind, asset, from, to, amountUnits, tokenId, logIndex, wrapping });
}

const TRANSFER: string = ERC20_TOPICS.transfer;

function isTransferSignature(signature: string | undefined): boolean {
  return (
    signature === TRANSFER ||
    signature === ERC1155_TOPICS.transferSingle ||
    signature === ERC1155_TOPICS.transferBatch
  );
}

function isWrappingSignature(
  signature: string | undefined,
): signature is typeof ERC20_TOPICS.deposit | typeof ERC20_TOPICS.withdrawal {
  return signature === ERC20_TOPICS.deposit || signature === ERC20_TOPICS.withdrawal;
}

/** Characters of one hex word with its prefix, and of an address' padding. */
const ONE_WORD = 66;
const PADDING = `0x${"00".repeat(12)}`;

/** WETH9 and its kind: `Deposit(address indexed, uint256)` mints, `Withdrawal` burns. */
function wrapped(
  { address: asset, topics, data }: JournaledLog,
  signature: string,
  logIndex: number,
): TokenMove | undefined {
  const [, account] = topics;
  if (topics.length !== 2 || data.length !== ONE_WORD || account?.startsWith(PADDING) !== true) {
    return undefined;
  }
  const address = `0x${account.slice(PADDING.length)}` as Address;
  // Nobody to nobody moves nothing.
  if (address === ZERO_ADDRESS) return undefined;
  const isMint = signature === ERC20_TOPICS.deposit;
  return {
    kind: "erc20",
    asset,
    from: isMint ? undefined : address,
    to: isMint ? address : undefined,
    amountUnits: BigInt(data),
    tokenId: undefined,
    logIndex,
    wrapping: "alone",
  };
}
