/** Where a new ledger begins to watch a chain that exists (`watcher.start-height`). */
import { AppError, errorMessage } from "../chain/errors.js";
import type { Height } from "../chain/hex.js";
import type { ChainIdentity } from "../ledger/database.js";
import { readTokenAssets } from "../ledger/assets/asset-registry.js";
import { NATIVE_ASSET } from "../ledger/journal/accounts.js";
import { beginCursorBehind, readCursor, type WalletHolding } from "../ledger/watch/watch-cursor.js";
import { openIncident } from "../ledger/incidents.js";
import { LedgerGuard } from "../ledger/guard/ledger-guard.js";
import { listWallets } from "../ledger/wallets/wallet.js";
import { type NewWallet, registerWallets } from "../ledger/wallets/wallet-registry.js";
import type { EvmClient } from "../rpc-client/evm-client.js";
import type { Logger } from "../runtime/process/logger.js";
import { retry } from "../runtime/process/task.js";
import type { SqlDatabase } from "../runtime/sql/sql.js";
import { DepositError } from "./errors.js";
import { heldUnits } from "../rpc-client/tokens/held-units.js";

/** Waits between two questions to a node that is down, or not as far yet. */
const MIN_DELAY_MS = 200;
const MAX_DELAY_MS = 2_000;

/**
 * Where a watcher looks before it books anything: whether ledger and node are of one chain, and where to
 * begin.
 */
export interface WatchStart {
  readonly database: SqlDatabase;
  readonly node: Pick<
    EvmClient,
    | "chainId"
    | "genesisHash"
    | "blockNumber"
    | "getBlockHeader"
    | "getBalance"
    | "tokenBalances"
    | "tokenCodes"
  >;
  readonly identity: ChainIdentity;
  /** "genesis", "head" or the first height to watch. */
  readonly startHeight: string;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/**
 * Registers the home's wallets, holds the ledger against what the home remembers, and begins a new one. In a
 * lost one only what somebody names is begun: a recovery books what was paid from its first block on.
 * @throws HOME_MARK_UNUSABLE
 */
export async function openGuarded(
  home: string,
  wallets: readonly NewWallet[],
  begin: WatchStart,
): Promise<LedgerGuard> {
  const { database, log } = begin;
  // Before the first block: what genesis gave them is their opening capital.
  await registerWallets(database, wallets);
  const guard = await LedgerGuard.open({ database, home, reporter: "deposit-watcher" });
  const found = await guard.check();
  // Closed before by what another home remembers, or by this one, which has nothing more to say then.
  const open = await openIncident(database);
  const reason = found ?? (open?.kind === "RECOVERY" ? open.message : undefined);
  if (reason === undefined) await beginWatch(begin);
  else {
    log.error({ reason }, "the ledger is in recovery: see causeway recover");
    await beginLost(begin);
  }
  return guard;
}

/** The head of now is not that of the first start: all that was paid before would be opening capital. */
async function beginLost(begin: WatchStart): Promise<void> {
  if (begin.startHeight !== "head") return beginWatch(begin);
  const { height, nextAddressIndex } = await readCursor(begin.database);
  if (height !== -1 || nextAddressIndex !== 0) return;
  begin.log.warn(
    {},
    "a lost ledger does not begin at the head: it watches from block 0 on, unless watcher.start-height " +
      "names a height, below the first payment, before causeway recover --apply",
  );
}

/**
 * Sets the cursor of a ledger that has seen nothing, behind the registration of its wallets; any other
 * is left alone, and so is one into which a recovery has booked payments. To be done before an
 * address can be registered: one that is there must not have its blocks skipped. Waits for a node
 * that does not answer or does not have the block yet.
 */
export async function beginWatch(start: WatchStart): Promise<void> {
  const { database, startHeight, log } = start;
  const { height: cursor, nextAddressIndex } = await readCursor(database);
  if (startHeight === "genesis" || cursor !== -1 || nextAddressIndex !== 0) return;
  for (;;) {
    const behind = await readBehind(start);
    const outcome = behind !== undefined && (await beginCursorBehind(database, behind));
    if (behind === undefined || outcome === false) return;
    if (outcome === "again") continue;
    log.info({ height: behind.height + 1 }, "deposits are watched from this block on");
    return;
  }
}

/** The block to begin behind, with what each wallet has after it; undefined where there is none. */
function readBehind(start: WatchStart) {
  const { node, identity, startHeight, log, signal } = start;
  return retry(
    async () => {
      const [chainId, genesisHash] = await Promise.all([
        node.chainId({ signal }),
        node.genesisHash({ signal }),
      ]);
      if (chainId !== identity.chainId || genesisHash !== identity.genesisHash) {
        throw notReady("the node serves another chain than the ledger's");
      }
      const height = await lastSkipped(startHeight, () => node.blockNumber({ signal }));
      if (height < 0) return undefined;
      const header = await node.getBlockHeader(height, { signal });
      if (header === undefined) throw notReady(`the node does not have block ${height} yet`);
      return { height, hash: header.hash, holdings: await readHoldings(start, height) };
    },
    {
      signal,
      minDelayMs: MIN_DELAY_MS,
      maxDelayMs: MAX_DELAY_MS,
      isRetriable: (error) => error instanceof AppError,
      onRetry: (error) => log.warn({ reason: errorMessage(error) }, "cannot begin to watch yet"),
    },
  );
}

/**
 * Of coins, and of tokens that are listed already: a start of before the first block has stored them. What a
 * contract does not tell keeps nothing from being watched; see `readTokens` of the backfill.
 */
async function readHoldings(
  { database, node, log, signal }: WatchStart,
  height: Height,
): Promise<readonly WalletHolding[]> {
  const tokens = await readTokenAssets(database);
  const holdings: WalletHolding[] = [];
  for (const { address: wallet } of await listWallets(database)) {
    const units = await node.getBalance(wallet, height, { signal });
    holdings.push({ wallet, asset: NATIVE_ASSET, units });
    const queries = tokens.map(({ contract: token }) => ({ token, account: wallet, at: height }));
    const held = await heldUnits(node, queries, { signal });
    for (const [index, { symbol: asset, contract }] of tokens.entries()) {
      const told = held[index];
      if (told === undefined) {
        const text = "a token's contract does not tell what a wallet of ours holds";
        log.error({ asset, contract, address: wallet, height }, text);
      }
      holdings.push({ wallet, asset, units: told ?? 0n });
    }
  }
  return holdings;
}

/** The last block that is not looked at; -1 for none. */
async function lastSkipped(text: string, head: () => Promise<Height>): Promise<Height> {
  return text === "head" ? head() : Number(text) - 1;
}

function notReady(reason: string): DepositError {
  return new DepositError("NOT_READY", reason, { retriable: true });
}
