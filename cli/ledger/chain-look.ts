/** Commands that end what has no nonce look first whether the chain has payments that the ledger has lost. */
import type { Address } from "../../chain/address.js";
import { errorMessage } from "../../chain/errors.js";
import type { WithdrawalId } from "../../ledger/requests/withdrawal-id.js";
import { LedgerError } from "../../ledger/errors.js";
import { phaseOf } from "../../ledger/requests/withdrawal-status.js";
import { readSeenHeight } from "../../ledger/wallets/seen-height.js";
import { checkNonces, createNonceLedger } from "../../ledger/withdrawals/chain-nonces.js";
import { findWithdrawal } from "../../ledger/withdrawals/withdrawals.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import { NodeFault, RpcError } from "../../rpc-client/errors.js";
import { createLogger } from "../../runtime/process/logger.js";
import { CliError } from "../errors.js";
import { refuseLate } from "./late-node.js";
import type { LedgerAlone } from "./ledger-alone.js";
import { askIdentity, type LedgerCommand, type OpenedLedger, withNode } from "./ledger-tools.js";

const UNDONE = "Nothing was taken back.";

/**
 * Freezes wallets whose nonces show such payments, as the API does: what is to end freezes with them, since
 * it may be paid. One that has a nonce ends by no word, and the node is not asked.
 * @throws NODE_UNFIT where the node does not answer, or shows too little; NODE_FOREIGN
 */
export async function lookBeforeEnding(
  command: LedgerCommand,
  opened: Pick<LedgerAlone, "database" | "identity">,
  id: WithdrawalId,
): Promise<void> {
  const found = await findWithdrawal(opened.database, id);
  if (found === undefined || phaseOf(found.status) !== "waiting") return;
  await asking(() => withNode(command, (node) => look(command, opened, node)), UNDONE);
}

/**
 * The same before a person's word lets something go on that is frozen, and was to end: it ends by that word,
 * unless a wallet is frozen for such payments.
 * @throws NODE_UNFIT
 */
export async function lookBeforeRelease(
  command: Pick<LedgerCommand, "signal">,
  opened: Pick<OpenedLedger, "database" | "node">,
  undone: string,
): Promise<void> {
  await asking(() => lookAtNonces(command, opened), undone);
}

async function asking(work: () => Promise<void>, undone: string): Promise<void> {
  try {
    await work();
  } catch (cause) {
    if (!isOfNode(cause)) throw cause;
    throw new CliError(
      "NODE_UNFIT",
      `The node cannot be asked (${errorMessage(cause)}), and the chain may have payments that the ledger ` +
        `has lost: type this again once it answers. ${undone}`,
      { cause, retriable: true },
    );
  }
}

/** Also that it shows less than the ledger has seen: behind a balancer each answer may be another node's. */
function isOfNode(cause: unknown): boolean {
  if (cause instanceof LedgerError) return cause.code === "NODE_BEHIND";
  return cause instanceof NodeFault || cause instanceof RpcError;
}

async function look(
  command: LedgerCommand,
  { database, identity }: Pick<LedgerAlone, "database" | "identity">,
  node: EvmClient,
): Promise<void> {
  const { chainId, genesisHash } = await askIdentity(node, command);
  if (chainId !== identity.chainId || genesisHash !== identity.genesisHash) {
    throw new CliError(
      "NODE_FOREIGN",
      `The node serves another chain (${chainId}, genesis ${genesisHash}) than this ledger is of ` +
        `(${identity.chainId}, ${identity.genesisHash}): connect a node of that chain. ${UNDONE}`,
    );
  }
  await refuseLate(command, { database, node }, UNDONE);
  await lookAtNonces(command, { database, node });
}

async function lookAtNonces(
  { signal }: Pick<LedgerCommand, "signal">,
  { database, node }: Pick<OpenedLedger, "database" | "node">,
): Promise<void> {
  const view = async (wallet: Address) => {
    const height = await node.blockNumber({ signal });
    const nonce = await node.getTransactionCount(wallet, height, { signal });
    const pendingNonce = await node.getTransactionCount(wallet, "pending", { signal });
    return { height, nonce, pendingNonce };
  };
  const log = createLogger({ component: "cli", level: "silent" });
  const parts = { ledger: createNonceLedger(database), node: { view }, log };
  await checkNonces(parts, { knownHeight: await readSeenHeight(database), signal });
}
