/** What the chain says about our own coins: inflows of hot wallets, and outflows nobody asked for. */
import type { Address } from "../../chain/address.js";
import type { Hash32, Height } from "../../chain/hex.js";
import type { Atoken } from "../../chain/units.js";
import type { Sql } from "../../runtime/sql/sql.js";
import { NATIVE_ASSET, OPENING_CAPITAL, SUSPENSE, walletAccount } from "../journal/accounts.js";
import { lossSuffix, walletInflowKey } from "../journal/entry-keys.js";
import type { TokenBalance } from "../assets/token-opening.js";
import { type JournalEntry, postJournal, postJournals } from "../journal/journal.js";
import type { PaidTerms } from "../requests/payment-terms.js";
import { storePossible } from "../requests/possible-payments.js";
import { readAcknowledged } from "../withdrawals/foreign-transactions.js";
import { freezeSigning } from "../requests/signing-freeze.js";
import { sweptPlaces } from "../treasury/swept-places.js";
import { type Outflow, type Payer, payerPlace, type WalletInflow } from "../watch/flows.js";

/** What blocks did to our own coins. */
export interface WalletFlows {
  readonly walletInflows: readonly WalletInflow[];
  readonly outflows: readonly Outflow[];
  /** What a transaction of these blocks may have paid; asked only of those that nothing explains. */
  readonly paidBy: (hash: Hash32) => readonly PaidTerms[];
  /** Whether other code than its token was accepted with tells of an outflow. */
  readonly isOfOtherCode: (outflow: Outflow) => boolean;
  /** How often the chain came back without blocks: places are told apart by it. */
  readonly rewinds: number;
}

/**
 * Books inflows of hot wallets and records outflows that nothing explains, with what they may have paid;
 * such an outflow of a hot wallet, unless an operator has acknowledged it, freezes signing for this wallet
 * in the same commit, also when it is retired: its key is in somebody's hands. What other code than a token
 * was accepted with says of it waits for a person, and freezes nothing: whoever changed the code may say it
 * again and again, without any key.
 * @returns the outflows nobody asked for
 */
export async function bookWalletFlows(tx: Sql, flows: WalletFlows): Promise<Outflow[]> {
  await postJournals(
    tx,
    flows.walletInflows.map((inflow) => ({
      kind: inflow.height === 0 ? "wallet.opening" : "wallet.inflow",
      idemKey: walletInflowKey(inflow, flows.rewinds),
      effectiveHeight: inflow.height,
      memo: inflow.txHash,
      postings: [
        {
          asset: inflow.asset,
          debit: walletAccount(inflow.wallet),
          credit: inflow.height === 0 ? OPENING_CAPITAL : SUSPENSE,
          amountUnits: inflow.amountUnits,
        },
      ],
    })),
  );
  const foreign = await withoutExplained(tx, flows.outflows);
  await recordForeignOutflows(tx, foreign, flows);
  const ofWallets = foreign.filter((each) => each.role === "hot-wallet");
  const hashes = [...new Set(ofWallets.map(({ txHash }) => txHash))];
  await storePossible(
    tx,
    hashes.map((hash) => ({ hash, paid: flows.paidBy(hash) })),
  );
  for (const outflow of ofWallets) {
    if (flows.isOfOtherCode(outflow)) continue;
    const { wallet, txHash } = outflow;
    const known = await readAcknowledged(tx, wallet, [txHash]);
    if (!known.has(txHash)) await freezeSigning(tx, wallet, freezeReason(outflow));
  }
  return foreign;
}

/**
 * Books what lay in a wallet before it was watched, once: it came from somewhere that only a person
 * knows. The wallet's balance after the block before its first one.
 * @returns false when it is booked already
 */
export async function bookWalletPast(
  tx: Sql,
  past: {
    readonly wallet: Address;
    readonly height: Height;
    readonly amountAtoken: Atoken;
    /** The same of tokens that counted by then. */
    readonly tokens: readonly TokenBalance[];
  },
): Promise<boolean> {
  const { wallet, height, amountAtoken, tokens } = past;
  const rows = await tx.query(
    `WITH booked AS (
       UPDATE wallet SET past_booked = true WHERE address = $1 AND NOT past_booked RETURNING 1)
     SELECT 1 FROM booked`,
    [wallet],
  );
  if (rows.length === 0) return false;
  const coins = { asset: NATIVE_ASSET, amountUnits: amountAtoken };
  const held = [coins, ...tokens].filter(({ amountUnits }) => amountUnits > 0n);
  if (held.length === 0) return true;
  await postJournal(tx, pastEntry({ wallet, height, held }));
  return true;
}

/**
 * The entry of what a wallet held after the block before its first one.
 * @param rewinds losses of blocks, with the one that undid the entry of before; 0 without such an entry
 */
export function pastEntry(
  past: {
    readonly wallet: Address;
    readonly height: Height;
    readonly held: readonly TokenBalance[];
  },
  rewinds = 0,
): JournalEntry {
  const { wallet, height, held } = past;
  return {
    kind: "wallet.past",
    idemKey: `wallet-past:${wallet}${lossSuffix(rewinds)}`,
    effectiveHeight: height,
    memo: `balance after block ${height}`,
    postings: held.map(({ asset, amountUnits }) => {
      return { asset, debit: walletAccount(wallet), credit: SUSPENSE, amountUnits };
    }),
  };
}

/**
 * An attempt is stored before its bytes leave the worker, and a recovery books those that were lost:
 * a transaction that is on the chain and that neither explains was signed by somebody else. What explains it
 * for the wallet that paid explains nothing of another one, of which it may take tokens.
 */
async function withoutExplained(tx: Sql, outflows: readonly Outflow[]): Promise<Outflow[]> {
  const own = await explainedPlaces(
    tx,
    outflows.map(({ wallet, txHash: hash }) => ({ wallet, hash })),
  );
  return outflows.filter(
    ({ role, wallet, txHash: hash }) =>
      role !== "hot-wallet" || !own.has(payerPlace({ wallet, hash })),
  );
}

/**
 * Those of these transactions of wallets that a payment, a recovery or a person explains.
 * @returns their keys, as of `payerPlace`
 */
async function explainedPlaces(sql: Sql, payers: readonly Payer[]): Promise<ReadonlySet<string>> {
  if (payers.length === 0) return new Set();
  const rows = await sql.query<Record<"wallet" | "hash", string>>(
    `SELECT wallet, hash FROM explanations_of($1::text[], $2::text[]) WHERE explanation IS NOT NULL`,
    [payers.map(({ wallet }) => wallet), payers.map(({ hash }) => hash)],
  );
  return new Set(rows.map(payerPlace));
}

/**
 * Those of these transactions that something explains at the address that they took of: a sweep that was
 * signed for it, or what `explainedPlaces` knows.
 * @returns their keys, as of `payerPlace`
 */
export async function explainedTakings(
  sql: Sql,
  payers: readonly Payer[],
): Promise<ReadonlySet<string>> {
  const swept = await sweptPlaces(sql, payers);
  return new Set([...swept, ...(await explainedPlaces(sql, payers))]);
}

async function recordForeignOutflows(
  tx: Sql,
  outflows: readonly Outflow[],
  { isOfOtherCode, rewinds }: Pick<WalletFlows, "isOfOtherCode" | "rewinds">,
): Promise<void> {
  if (outflows.length === 0) return;
  await tx.query(
    `INSERT INTO foreign_outflow (wallet, tx_hash, amount_units, fee_atoken, height, asset, other_code,
       rewinds)
     SELECT *, $8::integer FROM unnest($1::text[], $2::text[], $3::numeric[], $4::numeric[],
                                       $5::bigint[], $6::text[], $7::boolean[])
     ON CONFLICT (tx_hash, wallet, asset, rewinds) DO NOTHING`,
    [
      outflows.map((outflow) => outflow.wallet),
      outflows.map((outflow) => outflow.txHash),
      outflows.map((outflow) => outflow.amountUnits.toString()),
      outflows.map((outflow) => outflow.feeAtoken.toString()),
      outflows.map((outflow) => outflow.height),
      outflows.map((outflow) => outflow.asset),
      outflows.map(isOfOtherCode),
      rewinds,
    ],
  );
}

function freezeReason(outflow: Outflow): string {
  const { asset, txHash, height, amountUnits, feeAtoken } = outflow;
  const took =
    asset === NATIVE_ASSET
      ? `${amountUnits} atoken and a fee of ${feeAtoken} atoken`
      : `${amountUnits} units of ${asset}`;
  return (
    `transaction ${txHash} in block ${height} took ${took} from the hot wallet ${outflow.wallet}, ` +
    "and no withdrawal asked for it"
  );
}
