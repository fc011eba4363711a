/** Keeps what hot wallets hold within the policy's band: the rest to cold storage, or a request for more. */
import type { Address } from "../../chain/address.js";
import type { Height } from "../../chain/hex.js";
import { TRANSFER_GAS } from "../../chain/networks.js";
import type { Atoken } from "../../chain/units.js";
import { NATIVE_ASSET, TREASURY } from "../../ledger/journal/accounts.js";
import { readTokenAssets } from "../../ledger/assets/asset-registry.js";
import { readPausedTokens } from "../../ledger/assets/token-state.js";
import type { HashedPolicy, TreasuryAsset } from "../../ledger/policy/policy.js";
import { paymentsFrom } from "../../ledger/recovery/older-chain.js";
import { storedAddress, storedAtoken } from "../../ledger/stored-values.js";
import {
  newestColdMoves,
  openMove,
  type UncoveredMove,
  unpaidColdMoves,
} from "../../ledger/treasury/moves.js";
import {
  askForRefill,
  changeRefill,
  keepRefill,
  openRefills,
  type RefillChange,
  type RefillRequest,
  withdrawRefill,
  withdrawUnbanded,
} from "../../ledger/treasury/refills.js";
import { isAnyMissed } from "../../ledger/wallets/payable-wallets.js";
import { listWallets } from "../../ledger/wallets/wallet.js";
import { cancelWithdrawal } from "../../ledger/withdrawals/cancellation.js";
import { checkNonces, createNonceLedger } from "../../ledger/withdrawals/chain-nonces.js";
import { type AcceptRefusal, findWithdrawal } from "../../ledger/withdrawals/withdrawals.js";
import { isReserving } from "../../ledger/withdrawals/slot-rows.js";
import { readWalletOverview, type WalletLane } from "../../ledger/withdrawals/wallet-overview.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { failpoint } from "../../runtime/process/failpoint.js";
import { choosePrice } from "../gas.js";
import type { WalletView } from "../lane/wallet-node.js";
import { type BandDecision, decideBand, type Holding, type WaitingUnits } from "./band-decision.js";
import { readAddressStates } from "./sweep-node.js";
import { type TreasuryContext, TREASURY_FAILPOINTS } from "./treasury-context.js";

/** One that no wallet covers is given up by then: meanwhile none of less is begun. */
const COLD_PATIENCE_SECONDS = 300;

/** Of an asset that nobody waits for. */
const NOTHING: WaitingUnits = { sumUnits: 0n, largestUnits: 0n };

/** What a wallet keeps of its coins for fees when the rest goes to cold storage: transfers. */
const KEPT_TRANSFERS = 1_000n;

/**
 * Persons are asked for nothing that the policy has no band for any more, or that is paused: nobody would
 * end that.
 */
export async function endUnbanded(
  { database, log }: Pick<TreasuryContext, "database" | "log">,
  policy: HashedPolicy,
): Promise<void> {
  const banded = await bandedOf(database, policy);
  const ended = await withdrawUnbanded(
    database,
    banded.map(({ asset }) => asset),
  );
  for (const asset of ended) log.info({ asset }, "no refill is asked for any more");
}

/** Assets that have a band, but for tokens whose code changed: what these say of balances is no holding. */
async function bandedOf(sql: Sql, { policy }: HashedPolicy) {
  const paused = await readPausedTokens(sql);
  return [...(policy.treasury?.assets ?? [])].flatMap(([asset, rules]) =>
    rules.band === undefined || paused.has(asset) ? [] : [{ asset, rules, band: rules.band }],
  );
}

/** By wallet, how many of its transactions are in a block. */
type ChainNonces = ReadonlyMap<Address, bigint>;

/**
 * Looks at every asset with a band that is not paused.
 * @returns by asset why its move to cold storage was refused
 */
export async function keepBands(
  context: TreasuryContext,
  asked: {
    readonly policy: HashedPolicy;
    /**
     * The chain as it is now, undefined for none: the books are ahead of an older view whenever a
     * payment was mined since, and nothing could be decided.
     */
    readonly look: () => Promise<WalletView | undefined>;
    /** New moves are refused: the home's file may say so alone. */
    readonly isStopped: boolean;
    readonly signal: AbortSignal;
  },
): Promise<ReadonlyMap<string, AcceptRefusal>> {
  const { policy, isStopped } = asked;
  const refusals = new Map<string, AcceptRefusal>();
  const banded = await bandedOf(context.database, policy);
  if (banded.length === 0) return refusals;
  const view = await asked.look();
  if (view === undefined) return refusals;
  const parts = { view, signal: asked.signal };
  const nonces = await noncesOf(context, parts);
  const assets = banded.map(({ asset }) => asset);
  const books = await readBandBooks(context, { assets, nonces });
  if (books === undefined) return refusals;
  const { waitingByAsset, refills, coldMoves, unpaid } = books;
  for (const { asset, rules, band } of banded) {
    const holdings = await holdingsOf(context, { asset, books, ...parts });
    if (holdings === undefined) continue;
    await giveUpUncovered(context, unpaid, { asset, holdings, ...parts });
    const waiting = waitingByAsset.get(asset) ?? NOTHING;
    const refill = refills.get(asset);
    const decision = decideBand(holdings, waiting, band, refill?.wallet);
    const afterId = coldMoves.get(asset) ?? 0;
    const { height: seenHeight } = view;
    const by = { policy, isStopped, isAnyMissed: books.isAnyMissed };
    const found = { decision, refill, seenHeight, afterId };
    const refusal = await carryOut(context, { asset, rules, ...found, ...by });
    if (refusal !== undefined) refusals.set(asset, refusal);
  }
  return refusals;
}

/**
 * Transactions of the active wallets that are in the very block whose balances count: in another one of its
 * height, as another node may have it, a payment may be mined that these still hold.
 */
async function noncesOf(
  { database, rpc }: TreasuryContext,
  { view, signal }: { readonly view: WalletView; readonly signal: AbortSignal },
): Promise<ChainNonces> {
  const active = (await listWallets(database)).filter(({ status }) => status === "active");
  const wallets = active.map(({ address }) => address);
  const states = await readAddressStates(rpc, wallets, view.blockHash, { signal });
  return new Map(
    wallets.flatMap((wallet, index): [Address, bigint][] => {
      const state = states[index];
      return state === undefined ? [] : [[wallet, state.nonce]];
    }),
  );
}

/** What the books say of the wallets that may pay. */
interface BandBooks {
  readonly lanes: readonly Pick<WalletLane, "address">[];
  /** By wallet, what its payments may still take of the coins that it has on the chain. */
  readonly reservedAtoken: ReadonlyMap<Address, Atoken>;
  /** The same of tokens, by symbol and then by wallet. */
  readonly reservedUnits: ReadonlyMap<string, ReadonlyMap<Address, bigint>>;
  readonly waitingByAsset: ReadonlyMap<string, WaitingUnits>;
  /** By asset, what persons are asked to send. */
  readonly refills: ReadonlyMap<string, RefillRequest>;
  /** What a wallet has whose worker is away for a while may be all that the others lack. */
  readonly isAnyMissed: boolean;
  /** By asset, the newest move to cold storage. */
  readonly coldMoves: ReadonlyMap<string, number>;
  /** Moves to cold storage that should be paid by now. */
  readonly unpaid: readonly UncoveredMove[];
}

/**
 * All that is counted against balances, as of one moment: what gets its nonce, or is settled, between two
 * looks would be counted twice or nowhere.
 * @returns undefined where nothing can be decided: a wallet that no worker has looked at yet may hold
 *   anything, and what the chain has lost is no holding. Its bytes are sent again, and may be the very
 *   move that would be asked for.
 */
async function readBandBooks(
  { database }: TreasuryContext,
  { assets, nonces }: { readonly assets: readonly string[]; readonly nonces: ChainNonces },
): Promise<BandBooks | undefined> {
  return database.transaction(async (tx) => {
    await tx.query("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY");
    // What nobody can sign for is neither held nor given away.
    const lanes = (await readWalletOverview(tx)).filter(
      ({ status, freeze, isKeyHeld }) => status === "active" && !freeze.frozen && isKeyHeld,
    );
    if (lanes.length === 0) return undefined;
    const counted = new Map<Address, bigint>();
    for (const { address: wallet, seenAtoken } of lanes) {
      const nonce = nonces.get(wallet);
      if (seenAtoken === undefined || nonce === undefined) return undefined;
      counted.set(wallet, nonce);
      if ((await paymentsFrom(tx, { wallet, nonce, limit: 1 })).length > 0) return undefined;
    }
    return {
      lanes,
      reservedAtoken: await reservedOf(tx, counted),
      reservedUnits: await reservedTokensOf(tx, counted),
      waitingByAsset: await waitingOf(tx, assets),
      refills: new Map((await openRefills(tx)).map((refill) => [refill.asset, refill])),
      isAnyMissed: await isAnyMissed(tx),
      coldMoves: await newestColdMoves(tx),
      unpaid: await unpaidColdMoves(tx, { afterSeconds: COLD_PATIENCE_SECONDS }),
    };
  });
}

/**
 * What was decided for a wallet that has given some of it away since is decided anew, by what there is. Where
 * the chain has payments that the ledger has lost, the move may be among them: it freezes instead.
 * @throws NODE_BEHIND, and the node's own faults
 */
async function giveUpUncovered(
  { database, node, log }: TreasuryContext,
  unpaid: readonly UncoveredMove[],
  asked: {
    readonly asset: string;
    readonly holdings: readonly Holding[];
    readonly view: WalletView;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const { asset, holdings, view, signal } = asked;
  const move = unpaid.find((each) => each.asset === asset);
  if (move === undefined) return;
  const { withdrawalId, amountUnits } = move;
  if (holdings.some(({ freeUnits }) => freeUnits >= amountUnits)) return;
  const reason = "no wallet has what was to go to cold storage";
  const look = { ledger: createNonceLedger(database), node, log };
  await checkNonces(look, { knownHeight: view.height, signal });
  await cancelWithdrawal(database, withdrawalId, reason);
  const ended = await findWithdrawal(database, withdrawalId);
  const fields = { asset, withdrawal: withdrawalId, status: ended?.status, reason };
  if (ended?.status === "frozen") log.error(fields, "a move to cold storage is frozen");
  else log.warn(fields, "a move to cold storage is given up");
}

/** Each wallet's, at the block whose balances count. */
async function holdingsOf(
  { database, rpc, evm, settings }: TreasuryContext,
  asked: {
    readonly asset: string;
    readonly books: Pick<BandBooks, "lanes" | "reservedAtoken" | "reservedUnits">;
    readonly view: WalletView;
    readonly signal: AbortSignal;
  },
): Promise<readonly Holding[] | undefined> {
  const { asset, books, view, signal } = asked;
  const { lanes, reservedAtoken } = books;
  if (asset === NATIVE_ASSET) {
    const priceAtoken = choosePrice(view.suggestedPriceAtoken, settings.gas);
    const keptAtoken = KEPT_TRANSFERS * TRANSFER_GAS * priceAtoken;
    const wallets = lanes.map(({ address }) => address);
    const states = await readAddressStates(rpc, wallets, view.blockHash, { signal });
    return wallets.map((wallet, index) => {
      const heldAtoken = states[index]?.balanceAtoken ?? 0n;
      const freeUnits = heldAtoken - (reservedAtoken.get(wallet) ?? 0n) - keptAtoken;
      return { wallet, freeUnits: freeUnits > 0n ? freeUnits : 0n };
    });
  }
  const token = (await readTokenAssets(database)).find(({ symbol }) => symbol === asset);
  if (token === undefined) return undefined;
  const balances = await evm.tokenBalances(
    lanes.map(({ address: account }) => ({ token: token.contract, account, at: view.blockHash })),
    { signal },
  );
  const holdings = lanes.flatMap(({ address: wallet }, index) => {
    const heldUnits = balances[index];
    const reserved = books.reservedUnits.get(asset)?.get(wallet) ?? 0n;
    return heldUnits === undefined ? [] : [{ wallet, freeUnits: heldUnits - reserved }];
  });
  return holdings.length === lanes.length ? holdings : undefined;
}

/** SQL: open slots `s` of these wallets that reserve of their balances, with their withdrawals `w`. */
const RESERVING = `unnest($1::text[], $2::numeric[]) AS chain (wallet, nonce)
       JOIN nonce_slot s ON s.wallet = chain.wallet AND s.outcome IS NULL
       JOIN withdrawal w ON w.id = s.withdrawal_id
      WHERE ${isReserving("chain.nonce")}`;

/** Atoken that open slots reserve, by wallet. */
async function reservedOf(tx: Sql, nonces: ChainNonces): Promise<ReadonlyMap<Address, Atoken>> {
  const rows = await tx.query<{ wallet: string; reserved: string }>(
    `SELECT s.wallet, sum(s.reserved_atoken)::text AS reserved FROM ${RESERVING} GROUP BY s.wallet`,
    [[...nonces.keys()], [...nonces.values()].map(String)],
  );
  return new Map(rows.map((row) => [storedAddress(row.wallet), storedAtoken(row.reserved)]));
}

async function reservedTokensOf(tx: Sql, nonces: ChainNonces): Promise<BandBooks["reservedUnits"]> {
  const rows = await tx.query<Record<"asset" | "wallet" | "units", string>>(
    `SELECT w.asset, s.wallet, sum(w.amount_units)::text AS units FROM ${RESERVING}
        AND w.asset <> $3 GROUP BY w.asset, s.wallet`,
    [[...nonces.keys()], [...nonces.values()].map(String), NATIVE_ASSET],
  );
  const byAsset = new Map<string, Map<Address, bigint>>();
  for (const { asset, wallet, units } of rows) {
    const ofAsset = byAsset.get(asset) ?? new Map<Address, bigint>();
    byAsset.set(asset, ofAsset.set(storedAddress(wallet), storedAtoken(units)));
  }
  return byAsset;
}

/**
 * By asset what has no nonce. What is frozen may have to be paid still, with a nonce or without. What another
 * wallet is to pay it pays of its own. Of what the treasury itself moves no size counts: it is decided anew.
 */
async function waitingOf(
  tx: Sql,
  assets: readonly string[],
): Promise<ReadonlyMap<string, WaitingUnits>> {
  const rows = await tx.query<Record<"asset" | "sum" | "largest", string>>(
    `SELECT w.asset, sum(w.amount_units)::text AS sum,
            coalesce(max(w.amount_units) FILTER (WHERE w.customer_id <> $2), 0)::text AS largest
       FROM withdrawal w
       LEFT JOIN nonce_slot s ON s.withdrawal_id = w.id AND s.outcome IS NULL
      WHERE w.asset = ANY ($1::text[]) AND w.phase IN ('waiting', 'open')
        AND (w.phase = 'waiting' OR s.wallet IS NULL)
      GROUP BY w.asset`,
    [assets, TREASURY],
  );
  return new Map(
    rows.map(({ asset, sum, largest }) => [
      asset,
      { sumUnits: storedAtoken(sum), largestUnits: storedAtoken(largest) },
    ]),
  );
}

/** @returns why a move to cold storage was refused; undefined where none was */
async function carryOut(
  context: TreasuryContext,
  wanted: {
    readonly asset: string;
    readonly rules: TreasuryAsset;
    readonly decision: BandDecision;
    /** What persons are asked to send already. */
    readonly refill: RefillRequest | undefined;
    readonly isAnyMissed: boolean;
    readonly policy: HashedPolicy;
    readonly isStopped: boolean;
    readonly seenHeight: Height;
    /** The newest move to cold storage that was counted. */
    readonly afterId: number;
  },
): Promise<AcceptRefusal | undefined> {
  const { database, log } = context;
  const { asset, rules, decision, refill, policy, isStopped, seenHeight, afterId } = wanted;
  if (decision.kind === "refill") {
    await keepRefill(database, { asset, kind: "all" });
    // No person is asked to move coins that an unseen wallet may hold.
    const { amountUnits: wantedUnits } = decision;
    if (wanted.isAnyMissed) await lowerRefill(context, { asset, wantedUnits, seenHeight, refill });
    else await bringRefill(context, { asset, rules, decision, seenHeight });
    return undefined;
  }
  // Below the target what low wallets were to have still comes; what one payment alone wanted is not needed.
  const isLow = decision.kind === "low";
  if (isLow) {
    await keepRefill(database, { asset, kind: "any-wallet" });
    const { amountUnits } = decision;
    await lowerRefill(context, { asset, wantedUnits: amountUnits, seenHeight, refill });
  }
  if (await withdrawRefill(database, { asset, seenHeight, kind: isLow ? "one-wallet" : "all" })) {
    log.info({ asset }, "no refill is needed any more");
  }
  if (decision.kind !== "cold" || rules.coldAddress === undefined || isStopped) return undefined;
  const refusal = await openMove(
    database,
    {
      kind: "cold",
      asset,
      afterId,
      destination: rules.coldAddress,
      amountUnits: decision.amountUnits,
    },
    { minimumAtoken: 0n, policy, isStopped },
  );
  failpoint(TREASURY_FAILPOINTS.afterCold);
  return refusal;
}

/** Has persons who are asked for a refill already send no more than is wanted now; and nothing else. */
async function lowerRefill(
  { database, log }: Pick<TreasuryContext, "database" | "log">,
  {
    refill,
    ...wanted
  }: Pick<RefillChange, "asset" | "wantedUnits" | "seenHeight"> & {
    readonly refill: RefillRequest | undefined;
  },
): Promise<void> {
  if (refill === undefined || refill.wallet !== undefined) return;
  const { asset, wantedUnits } = wanted;
  const change = { ...wanted, slackUnits: wantedUnits, wallet: undefined };
  if ((await changeRefill(database, change)) === undefined) return;
  const facts = { asset, amountUnits: wantedUnits.toString() };
  log.info(facts, "a refill is asked for with another amount");
}

/** Asks persons for what is missing, or has what they are asked for follow it. */
async function bringRefill(
  { database, log }: Pick<TreasuryContext, "database" | "log">,
  wanted: {
    readonly asset: string;
    readonly rules: TreasuryAsset;
    readonly decision: Extract<BandDecision, { readonly kind: "refill" }>;
    readonly seenHeight: Height;
  },
): Promise<void> {
  const { asset, rules, decision, seenHeight } = wanted;
  const { amountUnits, wallet } = decision;
  const facts = { asset, amountUnits: amountUnits.toString(), wallet };
  const isNew = await askForRefill(database, { asset, amountUnits, wallet });
  // Who sends what was asked for is not sent after each payment: it is enough that no more is asked for then.
  const { targetUnits, lowUnits } = rules.band ?? { targetUnits: 0n, lowUnits: 0n };
  const slackUnits = wallet === undefined ? targetUnits - lowUnits : 0n;
  const change = { asset, wantedUnits: amountUnits, seenHeight, slackUnits, wallet };
  const became = isNew ? "moved" : await changeRefill(database, change);
  if (became === "changed") log.info(facts, "a refill is asked for with another amount");
  if (became !== "moved") return;
  const what =
    wallet === undefined
      ? "the hot wallets run low: send from cold storage"
      : "no hot wallet alone has what is waited for: send from cold storage to this one";
  log.error(facts, what);
}
