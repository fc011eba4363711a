/** Which of the waiting requests this lane's wallet pays, where there are several wallets. */
import { TRANSFER_GAS } from "../../../chain/networks.js";
import type { WithdrawalId } from "../../../ledger/requests/withdrawal-id.js";
import { choosePayers } from "../../../ledger/wallets/payer-choice.js";
import { checkNonces } from "../../../ledger/withdrawals/chain-nonces.js";
import type { QueuedWithdrawal } from "../../../ledger/withdrawals/nonce-slots.js";
import { choosePrice } from "../../gas.js";
import type { LaneContext, Round } from "../lane-context.js";
import { lastWordMs, overdueBehindMs, patienceMs } from "./other-payers.js";
import { storeEach } from "./put-off.js";

/** Requests in tokens with what this wallet has of them. */
export interface TokenShare {
  readonly requests: readonly QueuedWithdrawal[];
  readonly tokenUnits: ReadonlyMap<string, bigint>;
}

/**
 * The requests that this wallet is to pay, and those that no wallet covers: they are put off. What the
 * others have of a token is not known here: a token is paid by any wallet that has it and the coins
 * for a fee, and only one of them gets the slot.
 */
export async function shareOf(
  context: LaneContext,
  round: Round,
  requests: readonly QueuedWithdrawal[],
): Promise<{ readonly coins: readonly QueuedWithdrawal[]; readonly tokens: TokenShare }> {
  const { ledger, settings, signer } = context;
  const coins = requests.filter(({ contract }) => contract === undefined);
  const tokens = requests.filter(({ contract }) => contract !== undefined);
  const tokenUnits = await readTokenUnits(context, round, tokens);
  if (requests.length > 0) await checkOthers(context, round);
  const payers = requests.length === 0 ? [] : await ledger.readPayers();
  if (payers.every(({ wallet }) => wallet === signer.address)) {
    return { coins, tokens: { requests: tokens, tokenUnits } };
  }
  const feeAtoken = TRANSFER_GAS * choosePrice(round.view.suggestedPriceAtoken, settings.gas);
  const overdueMs = overdueBehindMs(settings);
  const wanted = coins.map(({ amountUnits, waitedMs }) => ({
    neededAtoken: amountUnits + feeAtoken,
    isOverdue: waitedMs > overdueMs,
  }));
  const maxOpenSlots = settings.maxLiveSlots;
  const chosen = choosePayers(wanted, payers, { asking: signer.address, maxOpenSlots });
  const gasOfOthers = notSignedHere(context, coins);
  const isCovered = ({ asset, amountUnits }: QueuedWithdrawal) =>
    round.view.balanceAtoken >= feeAtoken && amountUnits <= (tokenUnits.get(asset) ?? 0n);
  const mayBeOthers = leaveUncovered(context);
  return {
    coins: coins.filter(
      ({ id }, index) =>
        (chosen[index] ?? signer.address) === signer.address && !gasOfOthers.has(id),
    ),
    tokens: {
      requests: tokens.filter((request) => isCovered(request) || !mayBeOthers(request)),
      tokenUnits,
    },
  };
}

/**
 * Who lacks a token's units says so last: a wallet that has them may know better why it does not pay, and
 * puts the request off itself then. Half of what is looked at is left so for longer than until it is overdue,
 * as others may stand behind it.
 * @returns whether a request in a token that this wallet does not cover is left to the others
 */
function leaveUncovered({
  settings,
}: Pick<LaneContext, "settings">): (request: QueuedWithdrawal) => boolean {
  let roomCount = Math.floor(settings.batchSize / 2);
  return ({ waitedMs }) => {
    if (waitedMs <= overdueBehindMs(settings)) return true;
    if (waitedMs > lastWordMs(settings) || roomCount === 0) return false;
    roomCount -= 1;
    return true;
  };
}

/**
 * Gas that this home's signer refuses for good, since it lacks the deposit key or has another one: it
 * keeps its place, and another wallet, perhaps of a home that has the key, takes it once it is overdue.
 * What still waits behind the patience is rejected here.
 */
function notSignedHere(
  { signer, settings }: LaneContext,
  requests: readonly QueuedWithdrawal[],
): ReadonlySet<WithdrawalId> {
  const given = requests.filter(
    ({ addressIndex, waitedMs }) => addressIndex !== undefined && waitedMs <= patienceMs(settings),
  );
  const refusals = signer.review(
    given.map((request) => ({ ...request, withdrawalId: request.id, approvals: [] })),
  );
  return new Set(
    given.flatMap(({ id }, index) =>
      refusals[index]?.code === "FORBIDDEN_DESTINATION" ? [id] : [],
    ),
  );
}

/**
 * A ledger that has lost its last commits shows it by the nonces of whichever wallet paid then, whose own
 * lane may look later than this one pays what is asked for again, or ends what waits.
 */
export async function checkOthers(context: LaneContext, { view, signal }: Round): Promise<void> {
  const { address: besides } = context.signer;
  await checkNonces(context, { besides, knownHeight: view.height, signal });
}

/** Ends requests to an address that has become a wallet of ours since they were accepted. */
export async function withoutOwn(
  context: LaneContext,
  { lease }: Round,
  requests: readonly QueuedWithdrawal[],
): Promise<readonly QueuedWithdrawal[]> {
  const own = requests.filter(({ isToOwnWallet }) => isToOwnWallet);
  if (own.length === 0) return requests;
  const reason = "rule own-wallet: the destination is a hot wallet of the exchange";
  const steps = own.map(({ id }) => ({ id, reason, data: { rule: "own-wallet" } }));
  await storeEach(context, steps, (some) => context.ledger.endBeforeSlot(lease, "rejected", some));
  context.log.warn({ count: own.length }, "withdrawals to wallets of ours are rejected");
  return requests.filter(({ isToOwnWallet }) => !isToOwnWallet);
}

/** The wallet's balances of the requests' tokens after the round's block, by asset. */
async function readTokenUnits(
  { node, signer }: LaneContext,
  { view, signal }: Round,
  requests: readonly QueuedWithdrawal[],
): Promise<ReadonlyMap<string, bigint>> {
  const contracts = new Map(
    requests.flatMap(({ asset, contract }) => (contract === undefined ? [] : [[asset, contract]])),
  );
  if (contracts.size === 0) return new Map();
  const tokens = [...contracts.values()];
  const units = await node.tokenBalances(signer.address, tokens, view.blockHash, { signal });
  // A token that does not tell covers nothing.
  return new Map([...contracts.keys()].map((asset, index) => [asset, units[index] ?? 0n]));
}
