/**
 * A round in which the chain comes back without its newest blocks and goes on with other ones: what
 * was booked of them is undone by the documented commands, payments are sent again, and those who
 * paid customers send again what they want to (docs/restore.md).
 */
import type { LabExchange } from "../helpers/faults/lab/lab-exchange.js";
import type { Payment, Row } from "../helpers/faults/promises.js";
import { until } from "../helpers/until.js";
import { command, must, mustAtLast, REASON, untilCaughtUp } from "./operator.js";

/** What is done with a deposit in a lost block that is worth more than all that its customer had. */
type GiftUse = "none" | "withdrawn before" | "asked for after";

/** One in so many rounds loses the same blocks, and what was mined since, once more. */
const ROUNDS_PER_SECOND_LOSS = 3;

/** Works above a copy of the chain, puts the copy back, and recovers. */
export async function loseBlocks(lab: LabExchange): Promise<void> {
  const { customers, random } = lab;
  const { chain } = lab.options;
  const often = () => random.integer(2) === 0;
  const use = random.pick<GiftUse>(["none", "withdrawn before", "asked for after"]);
  // Else node and Data API go on giving wrong answers while the chain is older.
  if (often()) await lab.heal();
  if (often()) await lab.work();
  const keptHeight = await customers.chain.height();
  await chain.keepCopy();
  if (often()) await customers.register(random.pick(customers.customers));
  await lab.work(1 + random.integer(2));
  const gift = use === "none" ? undefined : await customers.payMuch();
  if (gift !== undefined || often()) await customers.settled();
  if (gift !== undefined && use === "withdrawn before") {
    await customers.withdrawOf(gift, "fresh");
    await customers.settled();
  }
  await comeBackOlder(lab, keptHeight);
  if (often()) await customers.withdraw("fresh");
  if (gift !== undefined && use === "asked for after") {
    await untilHalted(lab);
    await customers.withdrawOf(gift, "uncovered");
  }
  // What was withdrawn already is missing for as long as the gift is not mined again.
  const least = use === "withdrawn before" ? gift : undefined;
  await recoverOlderChain(lab, least);
  if (random.integer(ROUNDS_PER_SECOND_LOSS) > 0) return;
  if (often()) await lab.work();
  await comeBackOlder(lab, keptHeight);
  await recoverOlderChain(lab, least);
}

/** What was shown of the lost blocks is no promise any more. */
async function comeBackOlder(lab: LabExchange, keptHeight: number): Promise<void> {
  await lab.endWatch();
  await lab.options.chain.comeBackOlder();
  lab.witness.forgetAbove(keptHeight);
  lab.beginWatch();
}

/**
 * What the operator types, while those who paid customers pay again what the chain has lost.
 * @param least the payment that surely is sent again
 */
async function recoverOlderChain(lab: LabExchange, least: Payment | undefined): Promise<void> {
  const { customers, random, members } = lab;
  const often = () => random.integer(2) === 0;
  const isPaidBefore = often();
  if (isPaidBefore) await customers.payer.payLostAgain(random, least);
  if (often()) random.pick(members).process.kill();
  // Where nothing was booked of the lost blocks yet, nothing is missing, and all goes on by itself.
  if ((await command(lab, "recover")).code !== 0) await mustAtLast(lab, "recover", "--apply");
  if (!isPaidBefore) await customers.payer.payLostAgain(random, least);
  await untilCaughtUp(lab);
  await acceptMinedAgain(lab);
  await mustAtLast(lab, "withdrawals", "release");
  await noteUncovered(lab, least);
}

/** What was mined in the place of what had ended a request is its customer's matter. */
async function acceptMinedAgain(lab: LabExchange): Promise<void> {
  const { stdout } = await command(lab, "ledger", "open", "--json");
  const { remined } = JSON.parse(stdout) as { remined: readonly Row[] };
  for (const { name = "", withdrawalId, customerId, takenUnits = "0" } of remined) {
    const account = `liability:customer:${customerId}`;
    await must(lab, "ledger", "accept-remined", name, "--account", account, "--reason", REASON);
    const request = lab.customers.requests.find(({ id }) => id === withdrawalId);
    if (request === undefined) throw new Error(`nobody asked for ${withdrawalId}`);
    request.minedAgain = BigInt(takenUnits) > 0n ? "paid" : "unpaid";
  }
}

/** What a customer asked for beside a withdrawn deposit that was gone then may have had to end. */
async function noteUncovered({ customers }: LabExchange, gift: Payment | undefined): Promise<void> {
  const owner = customers.addresses.get(gift?.to ?? "");
  const rows = await customers.list("withdrawals");
  const isEnded = ({ status, reason }: Row) =>
    status === "rejected" && reason?.startsWith("rule DEPOSIT_LOST") === true;
  const ended = new Set(rows.filter(isEnded).map(({ id }) => id));
  for (const request of customers.requests) {
    if (request.customerId === owner && ended.has(request.id)) request.kind = "uncovered";
  }
}

/** From then on nothing is signed, and nothing is credited. */
async function untilHalted(lab: LabExchange): Promise<void> {
  const isHalted = async () => {
    const rows = await lab.query(`SELECT 1 FROM incident WHERE resolved_at IS NULL`);
    return rows.length > 0;
  };
  await until(isHalted, { timeoutMs: 60_000, what: "the watcher halts at the lost blocks" });
}
