/**
 * A round in which the chain comes back without its newest blocks and goes on with other ones: what
 * was booked of them is undone by the documented commands, payments are sent again, and those who
 * paid customers send again what they want to (docs/restore.md).
 */
import type { LabExchange } from "../helpers/faults/lab/lab-exchange.js";
import { command, mustAtLast, untilCaughtUp } from "./operator.js";

/** Works above a copy of the chain, puts the copy back, and recovers. */
export async function loseBlocks(lab: LabExchange): Promise<void> {
  const { customers, random } = lab;
  const { chain } = lab.options;
  const often = () => random.integer(2) === 0;
  await lab.heal();
  if (often()) await lab.work();
  await chain.keepCopy();
  if (often()) await customers.register(random.pick(customers.customers));
  await lab.work(1 + random.integer(2));
  if (often()) await customers.settled();
  await chain.comeBackOlder();
  const isPaidBefore = often();
  if (isPaidBefore) await customers.payLostAgain();
  if (often()) await customers.withdraw("fresh");
  // Where nothing was booked of the lost blocks yet, nothing is missing, and all goes on by itself.
  if ((await command(lab, "recover")).code === 1) await mustAtLast(lab, "recover", "--apply");
  if (!isPaidBefore) await customers.payLostAgain();
  await untilCaughtUp(lab);
  await mustAtLast(lab, "withdrawals", "release");
}
