/**
 * From a block to its transfers, in order: native coins as the journal has them, then tokens as
 * contracts log them. Pure. What moved nothing (zero coins, reverted frames) is not among them; a
 * log of a token is a claim, and balances made of claims are checked elsewhere.
 */
import type { Address } from "../../chain/address.js";
import type { BalanceChange } from "../../chain/balance-change.js";
import { decodeErc1155, ERC1155_TOPICS, ERC20_TOPICS } from "../../chain/erc20.js";
import type { Height } from "../../chain/hex.js";
import type { RangedBlock } from "../../rpc-client/indexing/block-range.js";
import type { JournaledLog } from "../../rpc-client/journal-codec.js";
import { transferOf } from "../../rpc-client/transfer-logs.js";

/** What kind of movement a transfer is. */
export type TransferKind =
  | "native"
  | "internal"
  | "fee"
  | "mint"
  | "burn"
  | "module"
  | "erc20"
  | "erc721"
  | "erc1155";

/** One movement of coins or tokens. */
export interface Transfer {
  readonly height: Height;
  /** Behind the last transaction for what the block itself did. */
  readonly txIndex: number;
  /** Position among the transfers of its transaction. */
  readonly seq: number;
  readonly kind: TransferKind;
  /** The journal's reason; undefined for tokens. */
  readonly reason: string | undefined;
  /** A token's contract; undefined for the coin. */
  readonly asset: Address | undefined;
  readonly from: Address | undefined;
  readonly to: Address | undefined;
  readonly amountUnits: bigint;
  readonly tokenId: bigint | undefined;
  readonly logIndex: number | undefined;
  readonly tracePath: string | undefined;
}

type Moved = Omit<Transfer, "height" | "txIndex" | "seq">;

/** Reasons of value that code moved: at the top level it is the transaction's own. */
const VALUE_REASONS: ReadonlySet<string> = new Set(["CALL", "CREATE", "CREATE2", "SELFDESTRUCT"]);

/** Shares of fees, on their way to and from the collector. */
const FEE_REASONS: ReadonlySet<string> = new Set(["FEE", "TREASURY"]);

/** All transfers of a block. */
export function transfersOf(block: RangedBlock): Transfer[] {
  const { height, transactions, blockChanges } = block;
  const transfers: Transfer[] = [];
  let logIndex = 0;
  for (const { index, changes, logs } of transactions) {
    const first = logIndex;
    logIndex += logs.length;
    const claims = logs.flatMap((log, position) => tokensMoved(log, first + position));
    const moved = [...changes.flatMap(coinsMoved), ...withoutEchoes(claims, logs, first)];
    for (const [seq, one] of moved.entries()) {
      transfers.push({ height, txIndex: index, seq, ...one });
    }
  }
  const txIndex = transactions.length;
  for (const [seq, one] of blockChanges.flatMap(coinsMoved).entries()) {
    transfers.push({ height, txIndex, seq, ...one });
  }
  return transfers;
}

function coinsMoved(change: BalanceChange): Moved[] {
  const { reason, from, to, amountAtoken, effective, tracePath } = change;
  if (!effective || amountAtoken === 0n) return [];
  return [
    {
      kind: kindOf(change),
      reason,
      asset: undefined,
      from,
      to,
      amountUnits: amountAtoken,
      tokenId: undefined,
      logIndex: undefined,
      tracePath,
    },
  ];
}

function kindOf({ reason, from, to, tracePath }: BalanceChange): TransferKind {
  if (FEE_REASONS.has(reason)) return "fee";
  if (from === undefined) return "mint";
  if (to === undefined) return "burn";
  if (!VALUE_REASONS.has(reason)) return "module";
  return tracePath === "" && reason !== "SELFDESTRUCT" ? "native" : "internal";
}

function tokensMoved(log: JournaledLog, logIndex: number): Moved[] {
  const signature: string | undefined = log.topics[0];
  const common = { reason: undefined, asset: log.address, logIndex, tracePath: undefined };
  if (signature === ERC20_TOPICS.deposit || signature === ERC20_TOPICS.withdrawal) {
    return wrapped(log, signature).map((one) => ({ ...common, ...one }));
  }
  if (!TRANSFER_SIGNATURES.has(signature ?? "")) return [];
  const { standard, from, to, value, isStandard } = transferOf(log.topics, log.data);
  const base = { ...common, kind: standard, from, to };
  if (standard === "erc1155") {
    const word = log.topics[0];
    if (word === undefined || log.topics.length < 4) return [];
    const parts = decodeErc1155(word, log.data) ?? [];
    return parts.map(({ id, units }) => ({ ...base, amountUnits: units, tokenId: id }));
  }
  if (value === undefined || (!isStandard && standard === "erc721")) return [];
  return standard === "erc721"
    ? [{ ...base, amountUnits: 1n, tokenId: value }]
    : [{ ...base, amountUnits: value, tokenId: undefined }];
}

/**
 * Some wrapped coins log a Deposit or Withdrawal and the equal Transfer from or to zero: then the
 * Transfer counts, once.
 */
function withoutEchoes(claims: readonly Moved[], logs: readonly JournaledLog[], first: number) {
  const isTransfer = ({ logIndex = 0 }: Moved) => TRANSFER === logs[logIndex - first]?.topics[0];
  const keyOf = (one: Moved) => `${one.asset} ${one.from} ${one.to} ${one.amountUnits}`;
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

const TRANSFER_SIGNATURES: ReadonlySet<string> = new Set([
  ERC20_TOPICS.transfer,
  ERC1155_TOPICS.transferSingle,
  ERC1155_TOPICS.transferBatch,
]);

/** Characters of one hex word with its prefix, and of an address' padding. */
const ONE_WORD = 66;
const PADDING = `0x${"00".repeat(12)}`;

/** WETH9 and its kind: `Deposit(address indexed, uint256)` mints, `Withdrawal` burns. */
function wrapped(
  { topics, data }: JournaledLog,
  signature: string,
): Pick<Moved, "kind" | "from" | "to" | "amountUnits" | "tokenId">[] {
  const [, account] = topics;
  if (topics.length !== 2 || data.length !== ONE_WORD || account?.startsWith(PADDING) !== true) {
    return [];
  }
  const address = `0x${account.slice(PADDING.length)}` as Address;
  const isMint = signature === ERC20_TOPICS.deposit;
  return [
    {
      kind: "erc20",
      from: isMint ? undefined : address,
      to: isMint ? address : undefined,
      amountUnits: BigInt(data),
      tokenId: undefined,
    },
  ];
}
