/**
 * Tokens in a run of blocks: operations of the Data API, logs where it has none, and the balances and
 * code that say how much of it is true. Logs are read of every contract, so that what nobody listed
 * is recorded, too.
 */
import type { Address } from "../../chain/address.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { ObservedCode } from "../../ledger/assets/token-state.js";
import type { NewSighting, SightingReason } from "../../ledger/assets/token-sightings.js";
import type { DataBlock } from "../../rpc-client/data-api/data-block.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import type { TransferLog } from "../../rpc-client/tokens/transfer-logs.js";
import type { Watched } from "../deposit-match.js";
import { IncidentFound } from "../errors.js";
import { type Payer, payerPlace } from "../../ledger/watch/flows.js";
import { type HeldQuery, zeroWithoutCode } from "../../rpc-client/tokens/held-units.js";
import type { RpcOptions } from "../../rpc-client/json-rpc.js";
import { answerOfSecond } from "../put-off.js";
import { opIndexOfLog, sidesOfLog, type TokenSide } from "./token-side.js";
import {
  payersInQuestion,
  judgeTouch,
  noVerdicts,
  touchKey,
  type TokenVerdicts,
  touchesOf,
} from "./token-verdict.js";
import { type Receivers, WantedLogs } from "./wanted-logs.js";

/** What is asked of the node. */
export type TokenNode = Pick<EvmClient, "transferLogs" | "tokenBalances" | "tokenCodes">;

/** Who is asked: what the first node says of balances the second one, where there is one, says too. */
export interface TokenNodes {
  readonly first: TokenNode;
  readonly second: Pick<TokenNode, "tokenBalances"> | undefined;
}

/** A run of blocks of the Data API. */
export interface TokenRunInput {
  readonly run: readonly DataBlock[];
  /** What the operations say of listed tokens at our addresses. */
  readonly sides: readonly TokenSide[];
  /** Of listed tokens: what others log in a block beyond any bound is no reason to stop at it. */
  readonly contracts: readonly Address[];
  /** Transfers of listed tokens that are held at once; see `RunTooLong`. */
  readonly mostListed?: number | undefined;
  /** Keys (`payerPlace`) of those of these transactions that the ledger explains. */
  readonly explained: (payers: readonly Payer[]) => Promise<ReadonlySet<string>>;
}

/** What the tokens of a run come to. */
export interface TokenRun extends TokenVerdicts {
  readonly codes: readonly ObservedCode[];
  /** Every account that a transfer of the run names as its receiver. */
  readonly receivers: Receivers;
  /** The least number of transfers of unlisted contracts that are not recorded; see `WantedLogs`. */
  readonly leftOut: number;
}

/**
 * Reads and judges.
 * @throws IncidentFound where the logs are of other blocks, or the nodes disagree about a balance;
 *   RunTooLong; the nodes' faults
 */
export async function readTokenRun(
  { first: node, second }: TokenNodes,
  watched: Watched & { has(address: Address): boolean },
  { run, sides, contracts, mostListed, explained }: TokenRunInput,
  options: { readonly signal: AbortSignal },
): Promise<TokenRun> {
  const verdicts = noVerdicts();
  const [first, last] = [run[0], run.at(-1)];
  if (first === undefined || last === undefined) {
    return { ...verdicts, codes: [], receivers: new Set(), leftOut: 0 };
  }
  const range = { from: first.height, to: last.height };
  const kept = new WantedLogs(watched, run, mostListed);
  const isWanted = (log: TransferLog) => kept.keep(log);
  const onLeftOut = () => kept.leaveOut();
  const wanted = { ...options, lastHash: last.hash, atLeast: contracts, isWanted, onLeftOut };
  const logs = await node.transferLogs(range, wanted);
  assertSameBlocks(kept, logs);
  const told = sidesBesideOperations(logs, sides, watched);
  for (const sighting of told.sightings) verdicts.sightings.push(sighting);
  const touches = touchesOf([...sides, ...told.sides]);
  const parents = new Map(run.map(({ height, parentHash }) => [height, parentHash]));
  // By hash: what another node behind a balancer says of its block of this height would be believed at once.
  const queries = touches.flatMap(({ contract: token, address: account, height, blockHash }) => [
    { token, account, at: parents.get(height) ?? blockHash, height: Math.max(0, height - 1) },
    { token, account, at: blockHash, height },
  ]);
  const [balances, codes] = await Promise.all([
    agreedBalances({ first: node, second }, queries, options),
    readCodes(node, touches, options),
  ]);
  const earlier = queries.filter((_, index) => index % 2 === 0);
  const before = await zeroWithoutCode(
    node,
    earlier,
    earlier.map((_, index) => balances[2 * index]),
    options,
  );
  const judged = touches.map((touch, index) => {
    const [beforeUnits, afterUnits] = [before[index], balances[2 * index + 1]];
    return { touch, around: { beforeUnits, afterUnits } };
  });
  const own = await explained(
    judged.flatMap(({ touch, around }) => payersInQuestion(touch, around)),
  );
  const owners = {
    customerOf: (address: Address) => watched.customerOf(address),
    walletFrom: (address: Address) => watched.walletFrom(address),
    isExplained: (payer: Payer) => own.has(payerPlace(payer)),
  };
  for (const { touch, around } of judged) judgeTouch(touch, around, owners, verdicts);
  return { ...verdicts, codes, receivers: kept, leftOut: kept.leftOut };
}

/** A balance, and the height of the block after which it is, whichever way `at` names that. */
export interface PastQuery extends HeldQuery {
  readonly height: Height;
}

/**
 * As `heldUnits`, of what every node shows.
 * @param options.known what they have to have; see `RpcOptions`
 * @throws IncidentFound where they disagree; the nodes' faults
 */
export async function agreedHeld(
  nodes: {
    readonly first: Pick<TokenNode, "tokenBalances" | "tokenCodes">;
    readonly second: TokenNodes["second"];
  },
  queries: readonly PastQuery[],
  options: Pick<RpcOptions, "signal" | "known">,
): Promise<readonly (bigint | undefined)[]> {
  const balances = await agreedBalances(nodes, queries, options);
  return zeroWithoutCode(nodes.first, queries, balances, options);
}

/** Balances that every node shows: a single one could make deposits of nothing. */
async function agreedBalances(
  {
    first,
    second,
  }: { readonly first: Pick<TokenNode, "tokenBalances">; readonly second: TokenNodes["second"] },
  queries: readonly PastQuery[],
  options: Pick<RpcOptions, "signal" | "known">,
): Promise<readonly (bigint | undefined)[]> {
  if (queries.length === 0) return [];
  const [balances, others = balances] = await Promise.all([
    first.tokenBalances(queries, options),
    answerOfSecond(second?.tokenBalances(queries, options), whatOf(queries)),
  ]);
  const place = queries.findIndex((_, index) => balances[index] !== others[index]);
  const query = queries[place];
  if (query === undefined) return balances;
  const { token, account: address, height } = query;
  throw new IncidentFound({
    kind: "BALANCE_MISMATCH",
    height,
    message: `the nodes disagree about what ${address} has of ${token} after block ${height}`,
    details: { address, token, units: balances[place], otherUnits: others[place] },
  });
}

/** Of a few questions, or of hundreds, the first stands for all. */
function whatOf([first, ...others]: readonly PastQuery[]): string {
  if (first === undefined) return "nothing";
  const more = others.length === 0 ? "" : ` and ${others.length} more balances`;
  return `what ${first.account} had of ${first.token} after block ${first.height}${more}`;
}

/** Logs and operations are read from two servers: they must tell of the same blocks. */
function assertSameBlocks(kept: WantedLogs, logs: readonly TransferLog[]): void {
  const other = logs.find(({ height, blockHash }) => kept.hashAt(height) !== blockHash);
  if (other === undefined) return;
  throw new IncidentFound({
    kind: "NODES_DISAGREE",
    height: other.height,
    message: `node and Data API disagree about block ${other.height}`,
    details: { nodeHash: other.blockHash, otherHash: kept.hashAt(other.height) },
  });
}

/**
 * What only the logs tell: listed tokens of which the Data API has no operations, because it leaves them
 * out or its list is an older one, and what nobody listed.
 */
function sidesBesideOperations(
  logs: readonly TransferLog[],
  operations: readonly TokenSide[],
  watched: Watched & { has(address: Address): boolean },
): { readonly sides: readonly TokenSide[]; readonly sightings: readonly NewSighting[] } {
  const sides: TokenSide[] = [];
  const sightings: NewSighting[] = [];
  const told = new Set(operations.map(touchKey));
  for (const log of logs) {
    // What a wallet held before its first block is booked as one balance.
    const isOurs = (address: Address) => {
      return watched.has(address) && log.height >= (watched.walletFrom(address) ?? 0);
    };
    const asset = watched.assetOf(log.contract);
    const isPlain = log.standard === "erc20" && log.isStandard;
    if (asset !== undefined && isPlain) {
      // A block has operations of all movements of a token, or of none.
      sides.push(...sidesOfLog(log, asset, isOurs).filter((side) => !told.has(touchKey(side))));
    } else if (
      log.to !== undefined &&
      isOurs(log.to) &&
      (log.value !== 0n || log.standard !== "erc20")
    ) {
      sightings.push(sightingOf(log, log.to, asset === undefined ? whyUnlisted(log) : "MALFORMED"));
    }
  }
  return { sides, sightings };
}

function whyUnlisted({ standard, isStandard }: TransferLog): SightingReason {
  if (standard !== "erc20") return "NFT";
  return isStandard ? "UNKNOWN_TOKEN" : "MALFORMED";
}

function sightingOf(log: TransferLog, address: Address, reason: SightingReason): NewSighting {
  const { height, blockHash, txHash, txIndex, contract, standard } = log;
  const place = { height, blockHash, txHash, txIndex, opIndex: opIndexOfLog(log) };
  return { ...place, contract, standard, address, sender: log.from, claimed: log.value, reason };
}

/** The code that each touched token ran after each block that touched it. */
async function readCodes(
  node: Pick<TokenNode, "tokenCodes">,
  touches: readonly {
    readonly asset: string;
    readonly contract: Address;
    readonly height: Height;
    readonly blockHash: Hash32;
  }[],
  options: { readonly signal: AbortSignal },
): Promise<ObservedCode[]> {
  const places = new Map(
    touches.map(({ asset, contract, height, blockHash }) => [
      `${contract} ${height}`,
      { asset, contract, height, blockHash },
    ]),
  );
  return observedCodes(node, [...places.values()], options);
}

/** Code of tokens after blocks; those without any are left out. */
export async function observedCodes(
  node: Pick<TokenNode, "tokenCodes">,
  places: readonly {
    readonly asset: string;
    readonly contract: Address;
    readonly height: Height;
    readonly blockHash: Hash32;
  }[],
  options: { readonly signal: AbortSignal },
): Promise<ObservedCode[]> {
  if (places.length === 0) return [];
  const codes = await node.tokenCodes(
    places.map(({ contract, blockHash: at }) => ({ contract, at })),
    options,
  );
  return places.flatMap(({ asset, height }, index) => {
    const code = codes[index];
    return code === undefined ? [] : [{ asset, height, ...code }];
  });
}
