/**
 * What logs of a transaction say that tokens moved. Pure. A log of a token is a claim: whoever counts
 * on it asks the contract.
 */
import type { Address } from "../../chain/address.js";
import { decodeErc1155, ERC1155_TOPICS, ERC20_TOPICS } from "../../chain/evm/erc20.js";
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
}

/**
 * All that the logs of one transaction tell of, in their order.
 * @param first index of the first log in its block
 */
export function tokensMoved(logs: readonly JournaledLog[], first: number): readonly TokenMove[] {
  const claims: TokenMove[] = [];
  for (const [position, log] of logs.entries()) {
    try {
      addClaims(claims, log, first + position);
    } catch {
      // What cannot be read says nothing. Anybody can log it, and who follows the chain has to get past it.
    }
  }
  return withoutEchoes(claims, logs, first);
}

/** Throws before it adds anything. */
function addClaims(claims: TokenMove[], log: JournaledLog, logIndex: number): void {
  const { topics, data, address: asset } = log;
  const signature: string | undefined = topics[0];
  if (signature === ERC20_TOPICS.deposit || signature === ERC20_TOPICS.withdrawal) {
    const one = wrapped(log, signature, logIndex);
    if (one !== undefined) claims.push(one);
    return;
  }
  if (!isTransferSignature(signature)) return;
  const { standard: kind, from, to, value, isStandard } = transferOf(topics, data);
  if (kind === "erc1155") {
    const word = topics[0];
    if (word === undefined || topics.length < 4) return;
    for (const { id, units } of decodeErc1155(word, data) ?? []) {
      claims.push({ kind, asset, from, to, amountUnits: units, tokenId: id, logIndex });
    }
    return;
  }
  if (value === undefined || (!isStandard && kind === "erc721")) return;
  const isOne = kind === "erc721";
  const amountUnits = isOne ? 1n : value;
  const tokenId = isOne ? value : undefined;
  claims.push({ kind, asset, from, to, amountUnits, tokenId, logIndex });
}

/**
 * Some wrapped coins log a Deposit or Withdrawal and the equal Transfer from or to zero: then the
 * Transfer counts, once.
 */
function withoutEchoes(
  claims: readonly TokenMove[],
  logs: readonly JournaledLog[],
  first: number,
): readonly TokenMove[] {
  const isTransfer = ({ logIndex }: TokenMove) => TRANSFER === logs[logIndex - first]?.topics[0];
  if (!claims.some((claim) => claim.kind === "erc20" && !isTransfer(claim))) return claims;
  const keyOf = (one: TokenMove) => `${one.asset} ${one.from} ${one.to} ${one.amountUnits}`;
  const counts = new Map<string, number>();
  for (const claim of claims) {
    if (isTransfer(claim)) counts.set(keyOf(claim), (counts.get(keyOf(claim)) ?? 0) + 1);
  }
  return claims.filter((claim) => {
    if (claim.kind !== "erc20" || isTransfer(claim)) return true;
    const count = counts.get(keyOf(claim)) ?? 0;
    if (count > 0) counts.set(keyOf(claim), count - 1);
    return count === 0;
  });
}

const TRANSFER: string = ERC20_TOPICS.transfer;

function isTransferSignature(signature: string | undefined): boolean {
  return (
    signature === TRANSFER ||
    signature === ERC1155_TOPICS.transferSingle ||
    signature === ERC1155_TOPICS.transferBatch
  );
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
  const isMint = signature === ERC20_TOPICS.deposit;
  return {
    kind: "erc20",
    asset,
    from: isMint ? undefined : address,
    to: isMint ? address : undefined,
    amountUnits: BigInt(data),
    tokenId: undefined,
    logIndex,
  };
}
