/**
 * What logs of a transaction say that tokens moved. Pure. A log of a token is a claim: whoever counts
 * on it asks the contract.
 */
import type { Address } from "../../chain/address.js";
import { decodeErc1155, ERC1155_TOPICS, ERC20_TOPICS } from "../../chain/erc20.js";
import type { JournaledLog } from "../journal-codec.js";
import { transferOf } from "../transfer-logs.js";

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
  const claims = logs.flatMap((log, position) => claimsOf(log, first + position));
  return withoutEchoes(claims, logs, first);
}

function claimsOf(log: JournaledLog, logIndex: number): TokenMove[] {
  const signature: string | undefined = log.topics[0];
  const common = { asset: log.address, logIndex };
  if (signature === ERC20_TOPICS.deposit || signature === ERC20_TOPICS.withdrawal) {
    return wrapped(log, signature).map((one) => ({ ...common, ...one }));
  }
  if (!isTransferSignature(signature)) return [];
  const { standard: kind, from, to, value, isStandard } = transferOf(log.topics, log.data);
  const moved = (amountUnits: bigint, tokenId: bigint | undefined): TokenMove => {
    return { ...common, kind, from, to, amountUnits, tokenId };
  };
  if (kind === "erc1155") {
    const word = log.topics[0];
    if (word === undefined || log.topics.length < 4) return [];
    const parts = decodeErc1155(word, log.data) ?? [];
    return parts.map(({ id, units }) => moved(units, id));
  }
  if (value === undefined || (!isStandard && kind === "erc721")) return [];
  return [kind === "erc721" ? moved(1n, value) : moved(value, undefined)];
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
  { topics, data }: JournaledLog,
  signature: string,
): Pick<TokenMove, "kind" | "from" | "to" | "amountUnits" | "tokenId">[] {
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
